import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound, ValidationFailed } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import { mapPage, type Page } from '../common/page.js';
import { databaseNow, type ListOptions, type Tx } from '../infra/database/index.js';
import { PartnersService } from '../partners/index.js';
import type { ApiKeyEntity } from './api-key.entity.js';
import { ApiKeysRepository, type KeyTerms } from './api-keys.repository.js';
import { mintKey } from './key-material.js';

/** Maximum number of active keys per partner and mode, and of replaced ones in their grace period (D12, D15). */
export const MAX_ACTIVE_KEYS = 10;

/** A key entity with the key itself, which is known only at this moment. */
export interface IssuedKey {
  readonly entity: ApiKeyEntity;
  readonly key: string;
}

/** A key with its number of calls in the last 24 hours, at most MAX_USES. */
export interface UsedKey {
  readonly entity: ApiKeyEntity;
  readonly uses24h: number;
}

export interface Rotation {
  readonly partnerId: string;
  readonly keyId: string;
  /** How long the old key stays valid after the rotation, unless it expires or is revoked earlier. */
  readonly graceSeconds: number;
}

/**
 * Creates, revokes and rotates a partner's keys. A revocation takes effect in every process at once, because nothing
 * caches keys (D13).
 */
@Injectable()
export class ApiKeysService {
  constructor(
    private readonly keys: ApiKeysRepository,
    private readonly partners: PartnersService,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound */
  async getById(tx: Tx, partnerId: string, id: string): Promise<ApiKeyEntity> {
    const key = await this.keys.findById(tx, partnerId, id);
    if (!key) throw new NotFound();
    return key;
  }

  /** A page of keys with their recent use: two statements, whatever the page size. */
  async list(partnerId: string, mode: Mode | undefined, options: ListOptions): Promise<Page<UsedKey>> {
    const page = await this.keys.list(partnerId, mode, options);
    const uses = await this.keys.usesOf(
      partnerId,
      page.items.map(({ id }) => id),
    );
    return mapPage(page, (entity) => ({ entity, uses24h: uses.get(entity.id) ?? 0 }));
  }

  /** @throws ValidationFailed for an expiry in the past; NotFound; AppError `limit_reached` */
  async create(tx: Tx, by: ChangeAuthor, terms: KeyTerms): Promise<IssuedKey> {
    await refusePastExpiry(tx, terms.expiresAt);
    const issued = await this.insertWithinLimit(tx, by, terms);
    const { id, mode, name, last4, expiresAt, allowedCidrs, scopes, spendLimitAmount, spendLimitCurrency } =
      issued.entity;
    await this.audit.record(tx, {
      ...by,
      action: 'api_key.created',
      partnerId: terms.partnerId,
      subjectId: id,
      details: {
        mode,
        name,
        last4,
        expires_at: expiresAt?.toISOString() ?? null,
        allowed_cidrs: allowedCidrs,
        scopes,
        spend_limit_amount: spendLimitAmount,
        spend_limit_currency: spendLimitCurrency,
      },
    });
    return issued;
  }

  /** Revokes a key permanently. A repeat changes nothing. @throws NotFound */
  async revoke(tx: Tx, by: ChangeAuthor, partnerId: string, id: string): Promise<UsedKey> {
    if (await this.keys.revoke(tx, partnerId, id)) {
      await this.audit.record(tx, { ...by, action: 'api_key.revoked', partnerId, subjectId: id });
    }
    const entity = await this.getById(tx, partnerId, id);
    return { entity, uses24h: (await this.keys.usesOf(partnerId, [id], tx)).get(id) ?? 0 };
  }

  /**
   * Gives a key a successor with the same name, mode, CIDRs, expiry, scopes and spend limit. Both spend from the same
   * limit. A replaced key in its grace period does not
   * count toward the limit, so a partner at the limit can still rotate. In return, a rotation ends the grace period of
   * the key that `keyId` itself has replaced, and of the earliest replaced keys whose successors were revoked.
   * @throws NotFound; AppError `conflict` for a key that is already revoked, expired or replaced
   */
  async rotate(tx: Tx, by: ChangeAuthor, { partnerId, keyId, graceSeconds }: Rotation): Promise<IssuedKey> {
    // A partner's rotations run one after the other, so that the limit of replaced keys is exact.
    await this.partners.getByIdForUpdate(tx, partnerId);
    const old = await this.getById(tx, partnerId, keyId);
    const issued = await this.insert(tx, by, { ...old, firstKeyId: old.firstKeyId ?? old.id });
    // The statement's guard decides, not the earlier read: one of two concurrent rotations wins.
    if (!(await this.keys.replace(tx, keyId, issued.entity.id, graceSeconds))) throw conflict(old);
    await this.auditRotation(tx, by, old, issued.entity, graceSeconds);
    await this.endGraces(tx, by, old);
    return issued;
  }

  private async endGraces(tx: Tx, by: ChangeAuthor, rotated: ApiKeyEntity): Promise<void> {
    const { partnerId } = rotated;
    const details = { reason: 'rotated_again' };
    for (const subjectId of await this.keys.endGraces(tx, rotated, MAX_ACTIVE_KEYS))
      await this.audit.record(tx, { ...by, action: 'api_key.revoked', partnerId, subjectId, details });
  }

  /** Locks the partner's row for the count, so that the limit holds under concurrent creations. */
  private async insertWithinLimit(tx: Tx, by: ChangeAuthor, terms: KeyTerms): Promise<IssuedKey> {
    await this.partners.getByIdForUpdate(tx, terms.partnerId);
    const active = await this.keys.countActive(tx, terms.partnerId, terms.mode);
    if (active >= MAX_ACTIVE_KEYS) {
      throw new AppError('limit_reached', {
        detail: `A partner can have at most ${MAX_ACTIVE_KEYS} active keys per mode. Revoke one first.`,
      });
    }
    return this.insert(tx, by, terms);
  }

  private async insert(tx: Tx, { actor }: ChangeAuthor, terms: KeyTerms): Promise<IssuedKey> {
    const material = mintKey(terms.mode);
    const createdBy = actor === 'system' ? actor : (actor.portalUser ?? actor.tokenName);
    return { entity: await this.keys.insert(tx, terms, material, createdBy), key: material.key };
  }

  private async auditRotation(
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

async function refusePastExpiry(tx: Tx, expiresAt: Date | null): Promise<void> {
  if (expiresAt === null || expiresAt > (await databaseNow(tx))) return;
  throw new ValidationFailed([
    { pointer: '/expires_at', code: 'in_the_past', message: 'must be in the future' },
  ]);
}

function conflict(old: ApiKeyEntity): AppError {
  const reason = old.replacedBy !== null ? 'already replaced' : 'revoked or expired';
  return new AppError('conflict', { detail: `The key is ${reason}. Create a new key instead.` });
}
