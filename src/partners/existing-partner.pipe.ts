import { Injectable, type PipeTransform } from '@nestjs/common';
import { NotFound } from '../common/errors/index.js';
import { isId } from '../common/ids.js';
import { PartnersService } from './partners.service.js';

/** The partner's id in a path of the admin API; an unknown or malformed one is the one 404 (D10). */
@Injectable()
export class ExistingPartner implements PipeTransform<string, Promise<string>> {
  constructor(private readonly partners: PartnersService) {}

  /** @throws NotFound */
  async transform(id: string): Promise<string> {
    if (!isId('ptn', id)) throw new NotFound();
    return (await this.partners.getById(id)).id;
  }
}
