import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { ValidationFailed } from '../common/errors/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import type { KeyTerms } from './api-keys.repository.js';
import { type IssuedKey, KeyIssuer } from './key-issuer.js';

@Injectable()
export class CreateKey {
  constructor(
    private readonly issuer: KeyIssuer,
    private readonly audit: AuditLog,
  ) {}

  /** @throws ValidationFailed for an expiry that is past; NotFound; AppError `limit_reached` */
  async execute(tx: Tx, by: ChangeAuthor, terms: KeyTerms): Promise<IssuedKey> {
    await refusePastExpiry(tx, terms.expiresAt);
    const issued = await this.issuer.issue(tx, terms);
    await this.audit.record(tx, {
      ...by,
      action: 'api_key.created',
      partnerId: terms.partnerId,
      subjectId: issued.entity.id,
      details: toDetails(issued.entity),
    });
    return issued;
  }
}

async function refusePastExpiry(tx: Tx, expiresAt: Date | null): Promise<void> {
  if (expiresAt === null || expiresAt > (await databaseNow(tx))) return;
  throw new ValidationFailed([
    { pointer: '/expires_at', code: 'in_the_past', message: 'must be in the future' },
  ]);
}

function toDetails({ mode, name, last4, expiresAt, allowedCidrs }: IssuedKey['entity']) {
  return { mode, name, last4, expires_at: expiresAt?.toISOString() ?? null, allowed_cidrs: allowedCidrs };
}
