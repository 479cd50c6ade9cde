import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import { PartnersService } from './find-partner.js';
import type { PartnerEntity } from './partner.entity.js';
import { type PartnerChanges, PartnersRepository } from './partners.repository.js';

/** Changes name and email; a change to the values that are there already changes nothing and is not audited. */
@Injectable()
export class UpdatePartner {
  constructor(
    private readonly find: PartnersService,
    private readonly partners: PartnersRepository,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound */
  async execute(tx: Tx, by: ChangeAuthor, id: string, wanted: PartnerChanges): Promise<PartnerEntity> {
    const before = await this.find.getByIdForUpdate(tx, id);
    const changes = differences(before, wanted);
    const fields = Object.keys(changes);
    if (fields.length === 0) return before;
    await this.partners.update(tx, id, changes);
    const details = {
      fields,
      ...(changes.name === undefined ? {} : { name: changes.name, previous_name: before.name }),
    };
    await this.audit.record(tx, { ...by, action: 'partner.updated', partnerId: id, subjectId: id, details });
    return this.find.getById(id, tx);
  }
}

function differences(before: PartnerEntity, wanted: PartnerChanges): PartnerChanges {
  const { name, email } = wanted;
  return {
    ...(name === undefined || name === before.name ? {} : { name }),
    ...(email === undefined || email === before.email ? {} : { email }),
  };
}
