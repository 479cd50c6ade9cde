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

/** The minter's choices; partner and minter are passed separately. */
export interface PortalSessionTerms {
  readonly actorId: string;
  readonly actorName: string | null;
  /** Null: all scopes of the minter. */
  readonly scopes: readonly PortalScope[] | null;
  readonly modes: readonly Mode[];
  readonly returnUrl: string | null;
  readonly ttlSeconds: number;
}

/** The minting admin token and its own scopes. */
export interface PortalMinter {
  readonly tokenName: string;
  readonly scopes: readonly AdminScope[];
}

/** A session with its code, which is known only at this moment. */
export interface MintedSession {
  readonly session: PortalSessionEntity;
  /** Contains the code in its fragment, which no server, log or `Referer` sees. */
  readonly url: string;
}

/** Starts and ends sessions of the partner portal (D50). Every change is audited in its transaction. */
@Injectable()
export class PortalSessionsService {
  constructor(
    private readonly sessions: PortalSessionsRepository,
    private readonly partners: PartnersService,
    private readonly audit: AuditLog,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'portal'>,
  ) {}

  /**
   * @throws NotFound; AppError `partner_suspended`; AppError `forbidden` when a requested scope exceeds the minter's:
   * the call fails as a whole instead of creating a smaller session
   */
  async mint(
    tx: Tx,
    by: ChangeAuthor,
    minter: PortalMinter,
    partnerId: string,
    terms: PortalSessionTerms,
  ): Promise<MintedSession> {
    const scopes = grantable(minter, terms.scopes);
    // A concurrent suspension or revocation of all sessions waits for this transaction, or vice versa.
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

  /**
   * Spends a code and returns the cookie's token, which is stored as a hash.
   * @throws AppError `unauthorized` for every invalid code
   */
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

  /** The session's next call returns 401 in every process. A repeat changes nothing. @throws NotFound */
  async revoke(tx: Tx, by: ChangeAuthor, partnerId: string, id: string): Promise<PortalSessionEntity> {
    if (await this.sessions.revoke(tx, partnerId, id)) {
      await this.audit.record(tx, { ...by, action: 'portal_session.revoked', partnerId, subjectId: id });
    }
    const session = await this.sessions.find(partnerId, id, tx);
    if (!session) throw new NotFound();
    return session;
  }

  /** Ends all sessions of a partner and returns their number. @throws NotFound */
  async revokeAll(tx: Tx, by: ChangeAuthor, partnerId: string): Promise<number> {
    // A session created concurrently is either included or created afterwards.
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
    detail: 'This admin token can grant only the scopes that it has. Remove the other scopes.',
  });
}

/** 256 bits of a CSPRNG. */
function randomToken(): string {
  return randomBytes(32).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
