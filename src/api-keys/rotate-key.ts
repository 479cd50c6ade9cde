import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ApiKeyEntity } from './api-key.entity.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { type IssuedKey, KeyIssuer } from './key-issuer.js';

export interface Rotation {
  readonly partnerId: string;
  readonly keyId: string;
  /** How long the old key stays valid beside the new one, unless it expires or is revoked before (D15). */
  readonly graceSeconds: number;
}

/** Gives a key a successor with the same name, mode, CIDRs and expiry. */
@Injectable()
export class RotateKey {
  constructor(
    private readonly keys: ApiKeysRepository,
    private readonly issuer: KeyIssuer,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound; AppError `conflict` for a key that is revoked, expired or replaced already */
  async execute(tx: Tx, by: ChangeAuthor, { partnerId, keyId, graceSeconds }: Rotation): Promise<IssuedKey> {
    const old = await this.keys.findById(tx, partnerId, keyId);
    if (!old) throw new NotFound();
    const issued = await this.issuer.issueSuccessor(tx, old);
    // The guard of the statement decides, not what was read before it: of two rotations at once one wins.
    if (!(await this.keys.replace(tx, keyId, issued.entity.id, graceSeconds))) throw conflict(old);
    await this.writeAudit(tx, by, old, issued.entity, graceSeconds);
    return issued;
  }

  private async writeAudit(
    tx: Tx,
    by: ChangeAuthor,
    old: ApiKeyEntity,
    successor: ApiKeyEntity,
    graceSeconds: number,
  ): Promise<void> {
    const { partnerId } = old;
    const { mode, name, last4 } = successor;
    await this.audit.record(tx, {
      ...by,
      action: 'api_key.rotated',
      partnerId,
      subjectId: old.id,
      details: { replaced_by: successor.id, grace_seconds: graceSeconds },
    });
    await this.audit.record(tx, {
      ...by,
      action: 'api_key.created',
      partnerId,
      subjectId: successor.id,
      details: { mode, name, last4, replaces: old.id },
    });
  }
}

function conflict(old: ApiKeyEntity): AppError {
  const reason = old.replacedBy !== null ? 'replaced already' : 'revoked or expired';
  return new AppError('conflict', { detail: `The key is ${reason}. Create a new one instead.` });
}
