import { Injectable } from '@nestjs/common';
import { NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import type { PartnerEntity } from './partner.entity.js';
import { PartnersRepository } from './partners.repository.js';

/** Partners by id, for this feature and for those whose paths begin with a partner. */
@Injectable()
export class PartnersService {
  constructor(private readonly partners: PartnersRepository) {}

  /** @throws NotFound */
  async getById(id: string, tx?: Tx): Promise<PartnerEntity> {
    return found(await this.partners.findById(id, tx));
  }

  /** The partner, locked until the end of `tx`: whoever counts what it has counts alone. @throws NotFound */
  async getByIdForUpdate(tx: Tx, id: string): Promise<PartnerEntity> {
    return found(await this.partners.findByIdForUpdate(tx, id));
  }
}

function found(partner: PartnerEntity | null): PartnerEntity {
  if (!partner) throw new NotFound();
  return partner;
}
