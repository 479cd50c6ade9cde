import { Inject, Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import { AppError } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { EDGE_POOL } from '../infra/database/index.js';

const USED = 'EXCLUDED.used + CASE WHEN q.day >= EXCLUDED.day THEN q.used ELSE 0 END';

/** $1 partner, $2 units, $3 units of a day. Writes nothing when that many are not left. */
const TAKE = `
  INSERT INTO sandbox_quotas AS q (partner_id, day, used)
  SELECT $1, (statement_timestamp() AT TIME ZONE 'UTC')::date, $2::int WHERE $2::int <= $3::int
  ON CONFLICT (partner_id) DO UPDATE SET day = greatest(q.day, EXCLUDED.day), used = ${USED}
  WHERE ${USED} <= $3::int`;

const BYTES_OF_A_UNIT = 1_024;

/**
 * Bounds what a partner can have stored by free Sandbox calls in a UTC day (D26): each eSIM, top-up and step of a
 * simulated device is a unit, and so is each full kilobyte of metadata. Live is bounded by what it costs.
 */
@Injectable()
export class SandboxQuota {
  constructor(
    @Inject(EDGE_POOL) private readonly pool: Pool,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'sandboxQuotaPerDay'>,
  ) {}

  /**
   * Takes units of the partner's day; does nothing in Live. A statement of its own: in the caller's transaction, the
   * partner's row would be locked until the commit, and its calls would wait for each other. Units of a call that fails
   * afterwards stay taken.
   * @throws AppError `limit_reached` when that many are not left, exact however many calls run at once
   */
  async take(
    { partnerId, mode }: TenantScope,
    units: number,
    metadata: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    if (mode === 'live') return;
    const limit = this.config.sandboxQuotaPerDay;
    const all = units + Math.floor(Buffer.byteLength(JSON.stringify(metadata)) / BYTES_OF_A_UNIT);
    const { rowCount } = await this.pool.query({
      name: 'take-sandbox-quota',
      text: TAKE,
      values: [partnerId, all, limit],
    });
    if (rowCount === 0) throw limitReached(limit);
  }
}

function limitReached(limit: number): AppError {
  return new AppError('limit_reached', {
    detail: `This call exceeds the partner's Sandbox quota of ${limit} a day: an eSIM, a top-up, a simulated step and each kilobyte of metadata count one. The quota is free again at 00:00 UTC. Retry then with a new Idempotency-Key.`,
  });
}
