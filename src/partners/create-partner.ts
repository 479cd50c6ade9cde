import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import type { PartnerEntity } from './partner.entity.js';
import { type NewPartner, PartnersRepository } from './partners.repository.js';

@Injectable()
export class CreatePartner {
  constructor(
    private readonly partners: PartnersRepository,
    private readonly audit: AuditLog,
  ) {}

  async execute(tx: Tx, by: ChangeAuthor, fields: NewPartner): Promise<PartnerEntity> {
    const partner = await this.partners.insert(tx, fields);
    await this.audit.record(tx, {
      ...by,
      action: 'partner.created',
      partnerId: partner.id,
      subjectId: partner.id,
      details: { name: partner.name },
    });
    return partner;
  }
}
