import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { PartnersService } from '../partners/index.js';
import type { ApiKeyEntity } from './api-key.entity.js';
import { ApiKeysRepository, type KeyTerms } from './api-keys.repository.js';
import { mintKey } from './key-material.js';

/** At most this many active keys per partner and mode (D12). */
export const MAX_ACTIVE_KEYS = 10;

/** A key at the one moment at which the key itself is known. */
export interface IssuedKey {
  readonly entity: ApiKeyEntity;
  readonly key: string;
}

/** Makes keys. The caller writes the audit entry; a seed has none to write. */
@Injectable()
export class KeyIssuer {
  constructor(
    private readonly partners: PartnersService,
    private readonly keys: ApiKeysRepository,
  ) {}

  /**
   * Issues a key. The partner's row is locked for the count, so that the limit holds however many creations run
   * at once. A replaced key in its grace does not count: a partner at the limit can still rotate.
   * @throws NotFound for an unknown partner; AppError `limit_reached`
   */
  async issue(tx: Tx, terms: KeyTerms): Promise<IssuedKey> {
    await this.partners.getByIdForUpdate(tx, terms.partnerId);
    const active = await this.keys.countActive(tx, terms.partnerId, terms.mode);
    if (active >= MAX_ACTIVE_KEYS) {
      throw new AppError('limit_reached', {
        detail: `A partner has at most ${MAX_ACTIVE_KEYS} active keys in each mode. Revoke one first.`,
      });
    }
    return this.issueSuccessor(tx, terms);
  }

  /** Issues a key that takes another's place, so that there is nothing to count. The partner must exist. */
  async issueSuccessor(tx: Tx, terms: KeyTerms): Promise<IssuedKey> {
    const material = mintKey(terms.mode);
    return { entity: await this.keys.insert(tx, terms, material), key: material.key };
  }
}
