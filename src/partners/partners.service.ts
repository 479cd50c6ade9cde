import { isDeepStrictEqual } from 'node:util';
import { Injectable, type PipeTransform } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { NotFound } from '../common/errors/index.js';
import { isId } from '../common/ids.js';
import { toPartnerBrand } from '../common/partner-brand.js';
import type { Tx } from '../infra/database/index.js';
import {
  type NewPartner,
  type PartnerChanges,
  type PartnerEntity,
  PartnersRepository,
  type PartnerStatus,
} from './partners.repository.js';

interface Transition {
  readonly from: PartnerStatus;
  readonly to: PartnerStatus;
  readonly action: string;
  /** The name of the text in the audit entry. */
  readonly explained: 'reason' | 'note';
}

const SUSPEND: Transition = {
  from: 'active',
  to: 'suspended',
  action: 'partner.suspended',
  explained: 'reason',
};
const REINSTATE: Transition = {
  from: 'suspended',
  to: 'active',
  action: 'partner.reinstated',
  explained: 'note',
};

/** Partners, for the portal team and for features whose paths begin with a partner. */
@Injectable()
export class PartnersService {
  constructor(
    private readonly partners: PartnersRepository,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound */
  async getById(id: string, tx?: Tx): Promise<PartnerEntity> {
    return found(await this.partners.findById(id, tx));
  }

  /** The partner, locked until the end of `tx`, so that counts of its objects are exact. @throws NotFound */
  async getByIdForUpdate(tx: Tx, id: string): Promise<PartnerEntity> {
    return found(await this.partners.findByIdForUpdate(tx, id));
  }

  /**
   * The partner, whose status cannot change until the end of `tx`. Several transactions may hold this lock at once.
   * @throws NotFound
   */
  async getByIdForShare(tx: Tx, id: string): Promise<PartnerEntity> {
    return found(await this.partners.findByIdForShare(tx, id));
  }

  async create(tx: Tx, by: ChangeAuthor, fields: NewPartner): Promise<PartnerEntity> {
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

  /**
   * Changes name, email and brand; a brand replaces only the fields that it names. Setting the current values changes nothing and is not audited.
   * @throws NotFound
   */
  async update(tx: Tx, by: ChangeAuthor, id: string, wanted: PartnerChanges): Promise<PartnerEntity> {
    const before = await this.getByIdForUpdate(tx, id);
    const changes = differences(before, wanted);
    const fields = Object.keys(changes);
    if (fields.length === 0) return before;
    await this.partners.update(tx, id, changes);
    const details = {
      fields,
      ...(changes.name === undefined ? {} : { name: changes.name, previous_name: before.name }),
    };
    await this.audit.record(tx, { ...by, action: 'partner.updated', partnerId: id, subjectId: id, details });
    return this.getById(id, tx);
  }

  /**
   * Suspends a partner: its calls are refused from the next one on. The key check reads the status in its own statement
   * (D13), so nothing needs to be notified. A repeat changes nothing. @throws NotFound
   */
  async suspend(tx: Tx, by: ChangeAuthor, id: string, reason: string | null): Promise<PartnerEntity> {
    return this.changeStatus(tx, by, id, SUSPEND, reason);
  }

  /** Ends a suspension; a repeat changes nothing. @throws NotFound */
  async reinstate(tx: Tx, by: ChangeAuthor, id: string, note: string | null): Promise<PartnerEntity> {
    return this.changeStatus(tx, by, id, REINSTATE, note);
  }

  private async changeStatus(
    tx: Tx,
    by: ChangeAuthor,
    id: string,
    { action, explained, ...statuses }: Transition,
    text: string | null,
  ): Promise<PartnerEntity> {
    // Lock first: the time of a suspension must be later than that of every session it ends (D50).
    await this.getByIdForUpdate(tx, id);
    if (await this.partners.changeStatus(tx, id, statuses, text)) {
      const details = text === null ? {} : { [explained]: text };
      await this.audit.record(tx, { ...by, action, partnerId: id, subjectId: id, details });
    }
    return this.getById(id, tx);
  }
}

function found(partner: PartnerEntity | null): PartnerEntity {
  if (!partner) throw new NotFound();
  return partner;
}

function differences(before: PartnerEntity, { name, email, brand }: PartnerChanges): PartnerChanges {
  const branded = { ...before.brand, ...brand };
  return {
    ...(isDeepStrictEqual(toPartnerBrand(branded), toPartnerBrand(before.brand)) ? {} : { brand: branded }),
    ...(name === undefined || name === before.name ? {} : { name }),
    ...(email === undefined || email === before.email ? {} : { email }),
  };
}

/** Looks up the partner id in a path of the admin API. Unknown and malformed ids get the same 404 (D10). */
@Injectable()
export class ExistingPartner implements PipeTransform<string, Promise<string>> {
  constructor(private readonly partners: PartnersService) {}

  /** @throws NotFound */
  async transform(id: string): Promise<string> {
    if (!isId('ptn', id)) throw new NotFound();
    return (await this.partners.getById(id)).id;
  }
}
