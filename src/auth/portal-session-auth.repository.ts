import { Inject, Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import type { Mode } from '../common/mode.js';
import { type PartnerBrand, toPartnerBrand } from '../common/partner-brand.js';
import type { PortalScope } from '../common/scopes.js';
import { EDGE_POOL } from '../infra/database/index.js';
import type { PortalSession } from './principal.js';

/** Maximum age of a session for actions that need a step-up (D50). */
export const STEP_UP_MINUTES = 15;

/**
 * $1 SHA-256 of the cookie. Nothing is cached: a revocation or suspension takes effect at the next call in every
 * process.
 */
const FIND_SESSION = `
  SELECT s.id, s.partner_id, s.minted_by, s.actor_id, s.actor_name, s.scopes, s.modes, s.return_url, s.expires_at,
         p.name AS partner_name, p.status AS partner_status, p.brand,
         s.created_at + interval '${STEP_UP_MINUTES} minutes' AS step_up_until,
         s.created_at + interval '${STEP_UP_MINUTES} minutes' > statement_timestamp() AS is_young
  FROM portal_sessions s JOIN partners p ON p.id = s.partner_id
  WHERE s.token_hash = $1 AND s.revoked_at IS NULL AND s.expires_at > statement_timestamp()
    AND p.status = 'active' AND s.created_at > coalesce(p.suspended_at, '-infinity')`;

/** $1 SHA-256 of the code. The exchange applies its own guard. */
const FIND_CODE = `
  SELECT 1 FROM portal_sessions
  WHERE code_hash = $1 AND exchanged_at IS NULL AND revoked_at IS NULL AND code_expires_at > statement_timestamp()`;

/** $1 SHA-256 of a code, whatever has become of it. */
const FIND_PARTNER_OF_CODE = `SELECT partner_id FROM portal_sessions WHERE code_hash = $1`;

interface SessionRow {
  id: string;
  partner_id: string;
  partner_name: string;
  partner_status: string;
  brand: Partial<PartnerBrand>;
  minted_by: string;
  actor_id: string;
  actor_name: string | null;
  scopes: PortalScope[];
  modes: Mode[];
  return_url: string | null;
  expires_at: Date;
  step_up_until: Date;
  is_young: boolean;
}

/** Looks up portal cookies and sign-in codes, on the edge's pool. */
@Injectable()
export class PortalSessionAuthRepository {
  constructor(@Inject(EDGE_POOL) private readonly pool: Pool) {}

  /** The cookie's session while it lives, otherwise null. */
  async find(tokenHash: Buffer): Promise<PortalSession | null> {
    const { rows } = await this.pool.query<SessionRow>({
      name: 'find-portal-session',
      text: FIND_SESSION,
      values: [tokenHash],
    });
    return rows[0] ? toSession(rows[0]) : null;
  }

  /** Whether this code can be exchanged. */
  async hasCode(codeHash: Buffer): Promise<boolean> {
    const { rows } = await this.pool.query({ name: 'find-portal-code', text: FIND_CODE, values: [codeHash] });
    return rows.length > 0;
  }

  /** The partner of a code that was minted, even if it was exchanged or is too old; null for any other. */
  async partnerOfCode(codeHash: Buffer): Promise<string | null> {
    const { rows } = await this.pool.query<{ partner_id: string }>({
      name: 'find-partner-of-portal-code',
      text: FIND_PARTNER_OF_CODE,
      values: [codeHash],
    });
    return rows[0]?.partner_id ?? null;
  }
}

function toSession(row: SessionRow): PortalSession {
  return {
    id: row.id,
    partnerId: row.partner_id,
    partnerName: row.partner_name,
    partnerStatus: row.partner_status,
    partnerBrand: toPartnerBrand(row.brand),
    mintedBy: row.minted_by,
    actorId: row.actor_id,
    actorName: row.actor_name,
    scopes: row.scopes,
    modes: row.modes,
    returnUrl: row.return_url,
    expiresAt: row.expires_at,
    stepUpUntil: row.step_up_until,
    isYoung: row.is_young,
  };
}
