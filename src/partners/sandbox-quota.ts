import { Inject, Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { Clock } from '../common/clock.js';
import { AppError } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { Batcher } from '../infra/batcher.js';
import { boundedCache } from '../infra/bounded-cache.js';
import { EDGE_POOL } from '../infra/database/index.js';
import { LOGGER } from '../infra/logging.js';

/** A partner's use on one day, as known to this process. */
interface Usage {
  readonly day: string;
  units: number;
  /** The part that is not written yet. */
  unwritten: number;
}

interface Use {
  readonly partnerId: string;
  readonly usage: Usage;
  readonly units: number;
}

/** $1 distinct partners, $2 their units, $3 the day. */
const ADD = `
  INSERT INTO sandbox_quotas AS q (partner_id, day, used)
  SELECT partner_id, $3::date, units FROM unnest($1::text[], $2::int[]) AS u (partner_id, units) ORDER BY partner_id
  ON CONFLICT (partner_id) DO UPDATE SET day = greatest(q.day, EXCLUDED.day),
    used = EXCLUDED.used + CASE WHEN q.day >= EXCLUDED.day THEN q.used ELSE 0 END
  RETURNING partner_id, used`;

const PARTNERS_KEPT = 20_000;
const WRITE_EVERY_MS = 50;
const MAX_BATCH = 1_000;
const BYTES_OF_A_UNIT = 1_024;

/**
 * Limits what a partner can store by free Sandbox calls in a UTC day (D26): each eSIM, top-up and step of a simulated
 * device is a unit, and so is each full kilobyte of metadata. Live is limited by its cost.
 *
 * Each process decides by its own count and writes the granted units a moment later, so that a call waits for no row
 * and takes no second connection. Several processes together may exceed the limit by what they grant in that moment.
 */
@Injectable()
export class SandboxQuota {
  private readonly usages = boundedCache<Usage>(PARTNERS_KEPT);
  private readonly writes = new Batcher<Use>({
    maxItems: MAX_BATCH,
    gather: WRITE_EVERY_MS,
    handle: (uses) => this.write(uses),
    failed: (uses, error) => {
      const partnerIds = [...new Set(uses.map(({ partnerId }) => partnerId))];
      this.logger.warn(
        { event: 'sandbox_quota.not_written', partnerIds, err: error },
        'failed to count Sandbox usage',
      );
    },
  });

  constructor(
    @Inject(EDGE_POOL) private readonly pool: Pick<Pool, 'query'>,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'sandboxQuotaPerDay'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly clock: Clock,
  ) {}

  /**
   * Takes units from the partner's quota of the day; does nothing in Live. Units of a call that fails later stay taken.
   * @throws AppError `limit_reached` when too few are left
   */
  take(
    { partnerId, mode }: TenantScope,
    units: number,
    metadata: Readonly<Record<string, string>> = {},
  ): void {
    if (mode === 'live') return;
    const limit = this.config.sandboxQuotaPerDay;
    const all = units + Math.floor(Buffer.byteLength(JSON.stringify(metadata)) / BYTES_OF_A_UNIT);
    const usage = this.usageOf(partnerId);
    if (usage.units + all > limit) throw limitReached(limit);
    usage.units += all;
    usage.unwritten += all;
    void this.writes.add({ partnerId, usage, units: all });
  }

  private usageOf(partnerId: string): Usage {
    const day = this.clock.now().toISOString().slice(0, 10);
    const known = this.usages.get(partnerId);
    if (known?.day === day) return known;
    const usage = { day, units: 0, unwritten: 0 };
    this.usages.set(partnerId, usage);
    return usage;
  }

  private async write(uses: readonly Use[]): Promise<void> {
    for (const [day, ofDay] of Map.groupBy(uses, ({ usage }) => usage.day)) {
      const byPartner = Map.groupBy(ofDay, ({ partnerId }) => partnerId);
      const sums = [...byPartner.values()].map((some) => some.reduce((sum, { units }) => sum + units, 0));
      const { rows } = await this.pool.query<{ partner_id: string; used: number }>({
        name: 'add-sandbox-usage',
        text: ADD,
        values: [[...byPartner.keys()], sums, day],
      });
      const used = new Map(rows.map((row) => [row.partner_id, row.used]));
      [...byPartner].forEach(([partnerId, [first]], index) => {
        const { usage } = first!;
        usage.unwritten -= sums[index]!;
        // Include units granted by other processes.
        usage.units = Math.max(usage.units, used.get(partnerId)! + usage.unwritten);
      });
    }
  }
}

function limitReached(limit: number): AppError {
  return new AppError('limit_reached', {
    detail: `This call exceeds the partner's Sandbox quota of ${limit} per day. Each eSIM, top-up, simulated step and kilobyte of metadata counts as one. The quota resets at 00:00 UTC. Retry after that with a new Idempotency-Key.`,
  });
}
