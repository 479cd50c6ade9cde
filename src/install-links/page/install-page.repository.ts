import { Inject, Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import type { ActivationPolicy, PackageEntity } from '../../catalog/index.js';
import type { Mode } from '../../common/mode.js';
import { isBrandUrl, type PartnerBrand } from '../../common/partner-brand.js';
import type { EsimStatus, ProfileStatus } from '../../esims/index.js';
import { EDGE_POOL, toSafeInteger, toSafeIntegerOrNull } from '../../infra/database/index.js';
import type { Language } from '../languages.js';

/** Wrong access codes after which a link is locked, and the length of the lock. */
export const MAX_WRONG_CODES = 5;
export const LOCK_MINUTES = 15;

/** A partner's appearance on the install page; null fields are not set. */
export interface Brand {
  readonly name: string;
  readonly logoUrl: string | null;
  /** `#rrggbb` */
  readonly accent: string | null;
  readonly helpUrl: string | null;
}

/** Everything that the page of one link shows, read in one statement. */
export interface InstallFacts {
  readonly linkId: string;
  readonly partnerId: string;
  readonly mode: Mode;
  readonly locale: Language | null;
  readonly accessCodeHash: Buffer | null;
  /** End of the last lock after too many wrong access codes; null without one. */
  readonly lockedUntil: Date | null;
  readonly brand: Brand;
  readonly esimId: string;
  readonly sealedInstallData: string;
  readonly status: EsimStatus;
  readonly profileStatus: ProfileStatus;
  readonly apn: string | null;
  readonly totalBytes: number | null;
  readonly usedBytes: number;
  readonly usageAsOf: Date;
  readonly validityDays: number;
  readonly activationPolicy: ActivationPolicy;
  readonly installBy: Date | null;
  readonly activatedAt: Date | null;
  readonly expiresAt: Date | null;
  /** The partner's own id of the order. */
  readonly reference: string | null;
  /** Null if the package has left the catalog. */
  readonly region: PackageEntity['region'];
  readonly coverage: readonly string[];
  /** The database's time. */
  readonly now: Date;
}

/** $1 SHA-256 of the token. Nothing is cached: a revoked link is a 404 at once, and no old state is shown (D63). */
const FIND = `
  SELECT l.id AS link_id, l.partner_id, l.mode, l.locale, l.access_code_hash, l.locked_until, p.name AS partner_name,
         p.brand, e.id AS esim_id, e.install_secrets, e.status, e.profile_status, e.apn,
         e.total_bytes, e.used_bytes, e.usage_as_of, e.validity_days, e.activation_policy, e.install_by, e.activated_at,
         e.expires_at, o.reference, k.region, k.coverage, statement_timestamp() AS now
  FROM install_links l JOIN esims e ON e.id = l.esim_id JOIN partners p ON p.id = l.partner_id
  JOIN orders o ON o.id = e.order_id LEFT JOIN packages k ON k.mode = e.mode AND k.id = e.package_id
  WHERE l.token_hash = $1 AND l.expires_at > statement_timestamp()`;

/** $2 whether the code is correct. A locked link has no row here, so that tries during a lock do not count. */
const COUNT_TRY = `
  UPDATE install_links SET
    wrong_codes = CASE WHEN $2 OR wrong_codes + 1 >= ${MAX_WRONG_CODES} THEN 0 ELSE wrong_codes + 1 END,
    locked_until = CASE WHEN NOT $2 AND wrong_codes + 1 >= ${MAX_WRONG_CODES}
      THEN statement_timestamp() + interval '${LOCK_MINUTES} minutes' END
  WHERE id = $1 AND coalesce(locked_until <= statement_timestamp(), true)
  RETURNING locked_until IS NOT NULL AS locked`;

/** $1 one id per opening. Locks in id order, so that two processes do not deadlock. */
const COUNT_OPENINGS = `
  UPDATE install_links l
  SET opened_count = l.opened_count + n.count, last_opened_at = statement_timestamp()
  FROM (SELECT id, count(*)::int AS count FROM unnest($1::text[]) AS u (id) GROUP BY id) AS n
  WHERE l.id = n.id AND l.id = ANY (ARRAY(
    SELECT id FROM install_links WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE))`;

interface FactsRow {
  link_id: string;
  partner_id: string;
  mode: Mode;
  locale: Language | null;
  access_code_hash: Buffer | null;
  locked_until: Date | null;
  partner_name: string;
  brand: Partial<PartnerBrand>;
  esim_id: string;
  install_secrets: string;
  status: EsimStatus;
  profile_status: ProfileStatus;
  apn: string | null;
  total_bytes: string | null;
  used_bytes: string;
  usage_as_of: Date;
  validity_days: number;
  activation_policy: ActivationPolicy;
  install_by: Date | null;
  activated_at: Date | null;
  expires_at: Date | null;
  reference: string | null;
  region: PackageEntity['region'];
  coverage: string[] | null;
  now: Date;
}

/** SQL of the install page, on the edge's pool. */
@Injectable()
export class InstallPageRepository {
  constructor(@Inject(EDGE_POOL) private readonly pool: Pool) {}

  /** Null for an unknown, expired or revoked link. */
  async find(tokenHash: Buffer): Promise<InstallFacts | null> {
    const { rows } = await this.pool.query<FactsRow>({
      name: 'find-install-link',
      text: FIND,
      values: [tokenHash],
    });
    return rows[0] ? toFacts(rows[0]) : null;
  }

  /** Counts a try of an access code. `locked` once too many were wrong, and for every try until the lock ends. */
  async countTry(linkId: string, isCorrect: boolean): Promise<'counted' | 'locked'> {
    const { rows } = await this.pool.query<{ locked: boolean }>({
      name: 'count-access-code',
      text: COUNT_TRY,
      values: [linkId, isCorrect],
    });
    return rows[0]?.locked === false ? 'counted' : 'locked';
  }

  async countOpenings(linkIds: readonly string[]): Promise<void> {
    await this.pool.query({ name: 'count-install-openings', text: COUNT_OPENINGS, values: [linkIds] });
  }
}

function toFacts(row: FactsRow): InstallFacts {
  return {
    linkId: row.link_id,
    partnerId: row.partner_id,
    mode: row.mode,
    locale: row.locale,
    accessCodeHash: row.access_code_hash,
    lockedUntil: row.locked_until,
    brand: toBrand(row),
    esimId: row.esim_id,
    sealedInstallData: row.install_secrets,
    status: row.status,
    profileStatus: row.profile_status,
    apn: row.apn,
    totalBytes: toSafeIntegerOrNull(row.total_bytes),
    usedBytes: toSafeInteger(row.used_bytes),
    usageAsOf: row.usage_as_of,
    validityDays: row.validity_days,
    activationPolicy: row.activation_policy,
    installBy: row.install_by,
    activatedAt: row.activated_at,
    expiresAt: row.expires_at,
    reference: row.reference,
    region: row.region,
    coverage: row.coverage ?? [],
    now: row.now,
  };
}

function toBrand({ brand, partner_name: name }: FactsRow): Brand {
  return {
    name: brand.name ?? name,
    logoUrl: usable(brand.logo_url),
    accent: brand.accent ?? null,
    helpUrl: usable(brand.help_url),
  };
}

/** A `javascript:` URL or a strange host in the database must have no effect. */
function usable(url: string | null | undefined): string | null {
  return isBrandUrl(url) ? url : null;
}
