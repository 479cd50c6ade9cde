import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import { PartnersService } from './find-partner.js';
import type { PartnerEntity, PartnerStatus } from './partner.entity.js';
import { PartnersRepository } from './partners.repository.js';

interface Transition {
  readonly from: PartnerStatus;
  readonly to: PartnerStatus;
  readonly action: string;
}

const SUSPEND: Transition = { from: 'active', to: 'suspended', action: 'partner.suspended' };
const REINSTATE: Transition = { from: 'suspended', to: 'active', action: 'partner.reinstated' };

/**
 * Suspends and reinstates a partner. Only calls are refused while suspended, from the next one on: the key check
 * reads the status in its own statement (D13), so there is nothing else to tell. Repeating changes nothing.
 */
@Injectable()
export class ChangePartnerStatus {
  constructor(
    private readonly find: PartnersService,
    private readonly partners: PartnersRepository,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound */
  async suspend(tx: Tx, by: ChangeAuthor, id: string): Promise<PartnerEntity> {
    return this.move(tx, by, id, SUSPEND);
  }

  /** @throws NotFound */
  async reinstate(tx: Tx, by: ChangeAuthor, id: string): Promise<PartnerEntity> {
    return this.move(tx, by, id, REINSTATE);
  }

  private async move(
    tx: Tx,
    by: ChangeAuthor,
    id: string,
    { from, to, action }: Transition,
  ): Promise<PartnerEntity> {
    if (await this.partners.changeStatus(tx, id, from, to)) {
      await this.audit.record(tx, { ...by, action, partnerId: id, subjectId: id });
    }
    return this.find.getById(id, tx);
  }
}
