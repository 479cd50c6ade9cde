import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ApiKeyEntity } from './api-key.entity.js';
import { ApiKeysRepository } from './api-keys.repository.js';

/** Revokes a key, for good. A call that starts after the answer gets 401 on every process: nothing caches keys (D13). */
@Injectable()
export class RevokeKey {
  constructor(
    private readonly keys: ApiKeysRepository,
    private readonly audit: AuditLog,
  ) {}

  /** Revoking again changes nothing. @throws NotFound */
  async execute(tx: Tx, by: ChangeAuthor, partnerId: string, id: string): Promise<ApiKeyEntity> {
    if (await this.keys.revoke(tx, partnerId, id)) {
      await this.audit.record(tx, { ...by, action: 'api_key.revoked', partnerId, subjectId: id });
    }
    const key = await this.keys.findById(tx, partnerId, id);
    if (!key) throw new NotFound();
    return key;
  }
}
