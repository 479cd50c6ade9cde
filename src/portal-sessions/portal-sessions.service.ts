import { createHash, randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { codeRefused } from '../auth/index.js';
import { AppError, NotFound } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import { type AdminScope, PORTAL_SCOPES, type PortalScope } from '../common/scopes.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import type { Tx } from '../infra/database/index.js';
import { PartnersService } from '../partners/index.js';
import type { PortalSessionEntity } from './portal-session.entity.js';
import { type ExchangedSession, PortalSessionsRepository } from './portal-sessions.repository.js';

/** What the minter chooses; the partner and who mints come beside it. */
export interface PortalSessionTerms {
  readonly actorId: string;
  readonly actorName: string | null;
  /** Null: all that the minter holds. */
  readonly scopes: readonly PortalScope[] | null;
  readonly modes: readonly Mode[];
  readonly returnUrl: string | null;
  readonly ttlSeconds: number;
}

/** Who mints, and what it holds itself. */
export interface PortalMinter {
  readonly tokenName: string;
  readonly scopes: readonly AdminScope[];
}

/** A session at the one moment at which its code is known. */
export interface MintedSession {
  readonly session: PortalSessionEntity;
  /** With the code in the fragment, which no server, log or `Referer` sees. */
  readonly url: string;
}

/** Begins and ends sessions of the partner portal (D50). Every change is audited in its transaction. */
@Injectable()
export class PortalSessionsService {
  constructor(
    private readonly sessions: PortalSessionsRepository,
    private readonly partners: PartnersService,
    private readonly audit: AuditLog,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'portal'>,
  ) {}

  /**
   * @throws NotFound; AppError `partner_suspended`; AppError `forbidden` when a scope is wanted that the minter does not
   * hold: the call as a whole, not a smaller session
   */
  async mint(
    tx: Tx,
    by: ChangeAuthor,
    minter: PortalMinter,
    partnerId: string,
    terms: PortalSessionTerms,
  ): Promise<MintedSession> {
    const scopes = grantable(minter, terms.scopes);
    // A suspension and a revocation of all wait for the session, or it waits for them.
    const partner = await this.partners.getByIdForShare(tx, partnerId);
    if (partner.status !== 'active') throw new AppError('partner_suspended');
    const code = `pst_${randomToken()}`;
    const { actorId, actorName, modes, returnUrl, ttlSeconds } = terms;
    const session = await this.sessions.insert(tx, {
      id: newId('ps'),
      partnerId,
      mintedBy: minter.tokenName,
      actorId,
      actorName,
      scopes: [...scopes],
      modes: [...modes],
      returnUrl,
      codeHash: sha256(code),
      ttlSeconds,
    });
    const details = { actor: actorId, scopes: [...scopes], modes: [...modes], ttl_seconds: ttlSeconds };
    const entry = { action: 'portal_session.created', partnerId, subjectId: session.id, details };
    await this.audit.record(tx, { ...by, ...entry });
    return { session, url: `${this.config.portal.url}/#code=${code}` };
  }

  /** Spends a code; the token is for the cookie and kept as a hash. @throws AppError `unauthorized` for any code that does not work */
  async exchange(
    tx: Tx,
    code: string,
    requestId: string,
  ): Promise<ExchangedSession & { readonly token: string }> {
    const token = randomToken();
    const exchanged = await this.sessions.exchange(tx, sha256(code), sha256(token));
    if (!exchanged) throw codeRefused();
    const { id, partnerId, mintedBy, actorId } = exchanged;
    const actor = { tokenName: mintedBy, portalUser: actorId, sessionId: id };
    const entry = { action: 'portal_session.begun', partnerId, subjectId: id };
    await this.audit.record(tx, { actor, requestId, ...entry });
    return { ...exchanged, token };
  }

  /** From its next call on, on every process, the session is 401. Revoking twice is the same as once. @throws NotFound */
  async revoke(tx: Tx, by: ChangeAuthor, partnerId: string, id: string): Promise<PortalSessionEntity> {
    if (await this.sessions.revoke(tx, partnerId, id)) {
      await this.audit.record(tx, { ...by, action: 'portal_session.revoked', partnerId, subjectId: id });
    }
    const session = await this.sessions.find(partnerId, id, tx);
    if (!session) throw new NotFound();
    return session;
  }

  /** Ends every session of a partner; answers how many there were. @throws NotFound */
  async revokeAll(tx: Tx, by: ChangeAuthor, partnerId: string): Promise<number> {
    // A session that is being made meanwhile is among them, or made after them.
    await this.partners.getByIdForUpdate(tx, partnerId);
    const revoked = await this.sessions.revokeAll(tx, partnerId);
    const entry = {
      action: 'portal_session.all_revoked',
      partnerId,
      subjectId: partnerId,
      details: { revoked },
    };
    if (revoked > 0) await this.audit.record(tx, { ...by, ...entry });
    return revoked;
  }
}

function grantable(minter: PortalMinter, wanted: readonly PortalScope[] | null): readonly PortalScope[] {
  const scopes = wanted ?? PORTAL_SCOPES.filter((scope) => minter.scopes.includes(scope));
  if (scopes.length > 0 && scopes.every((scope) => minter.scopes.includes(scope))) return scopes;
  throw new AppError('forbidden', {
    detail: 'A session gets only scopes that this admin token holds itself. Leave the others out.',
  });
}

/** 256 bits of a CSPRNG. */
function randomToken(): string {
  return randomBytes(32).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
