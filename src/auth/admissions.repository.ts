import { Inject, Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import type { Mode } from '../common/mode.js';
import { EDGE_POOL } from '../infra/database/index.js';
import { CHARGE_ONLY, CHECK_AND_CHARGE, CHECK_ONLY } from './admission-statements.js';
import type { BucketState, RateLimitShape } from './rate-verdict.js';

/** One key as it was presented from one address, by `calls` calls. */
export interface PresentedKey {
  readonly hash: Buffer;
  readonly address: string | null;
  readonly calls: number;
}

/** A valid key: neither revoked nor expired. */
export interface KnownKey {
  /** Index among the presented keys. */
  readonly index: number;
  readonly keyId: string;
  readonly partnerId: string;
  readonly partnerName: string;
  readonly mode: Mode;
  readonly partnerActive: boolean;
  readonly addressAllowed: boolean;
}

interface KnownRow {
  nth: string;
  key_id: string;
  partner_id: string;
  partner_name: string;
  mode: Mode;
  active: boolean;
  address_allowed: boolean;
}

interface BucketRow {
  granted: number;
  tat: string;
  now_us: string;
}

/** The statements of the edge, on a pool of their own and prepared once a connection. */
@Injectable()
export class ApiKeyAuthRepository {
  constructor(@Inject(EDGE_POOL) private readonly pool: Pool) {}

  /** Checks keys and charges their buckets in one statement: no cache, so a revocation is immediate (D13). */
  async checkAndCharge(
    keys: readonly PresentedKey[],
    shape: RateLimitShape,
  ): Promise<{ known: KnownKey[]; buckets: Map<string, BucketState> }> {
    const { rows } = await this.pool.query<KnownRow & BucketRow>({
      name: 'check-and-charge',
      text: CHECK_AND_CHARGE,
      values: toParameters(keys, shape),
    });
    return {
      known: rows.map(toKnownKey),
      buckets: new Map(rows.map((row) => [row.key_id, toBucketState(row)])),
    };
  }

  async check(keys: readonly PresentedKey[], shape: RateLimitShape): Promise<KnownKey[]> {
    const { rows } = await this.pool.query<KnownRow>({
      name: 'check-only',
      text: CHECK_ONLY,
      values: toParameters(keys, shape),
    });
    return rows.map(toKnownKey);
  }

  async charge(calls: ReadonlyMap<string, number>, shape: RateLimitShape): Promise<Map<string, BucketState>> {
    const { rows } = await this.pool.query<BucketRow & { key: string }>({
      name: 'charge-only',
      text: CHARGE_ONLY,
      values: [shape.burst, shape.microsecondsPerToken, [...calls.keys()], [...calls.values()]],
    });
    return new Map(rows.map((row) => [row.key, toBucketState(row)]));
  }
}

function toParameters(keys: readonly PresentedKey[], shape: RateLimitShape): unknown[] {
  return [
    shape.burst,
    shape.microsecondsPerToken,
    keys.map((key) => key.hash),
    keys.map((key) => key.address),
    keys.map((key) => key.calls),
  ];
}

function toKnownKey(row: KnownRow): KnownKey {
  return {
    index: Number(row.nth) - 1,
    keyId: row.key_id,
    partnerId: row.partner_id,
    partnerName: row.partner_name,
    mode: row.mode,
    partnerActive: row.active,
    addressAllowed: row.address_allowed,
  };
}

function toBucketState(row: BucketRow): BucketState {
  return { granted: row.granted, tatUs: Number(row.tat), nowUs: Number(row.now_us) };
}
