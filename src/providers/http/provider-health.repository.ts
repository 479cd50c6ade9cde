import type { Logger } from 'pino';
import type { EntityManager } from 'typeorm';
import { sql, toSafeIntegerOrNull } from '../../infra/database/index.js';
import { toLoggableError } from '../../infra/logging.js';
import type { ProviderCost } from '../esim-provider.js';

/** Result of the last calls to a provider; throttled, so recent writes may be missing. */
export interface ProviderHealth {
  readonly provider: string;
  readonly state: 'ok' | 'failing' | 'unknown';
  readonly lastOkAt: Date | null;
  readonly lastErrorAt: Date | null;
  readonly lastErrorCode: string | null;
  readonly balance: ProviderCost | null;
  readonly balanceAt: Date | null;
  readonly lastSyncAt: Date | null;
  readonly updatedAt: Date;
}

/** Receives the result of every call of the provider client. */
export type ProviderHealthRecorder = Pick<ProviderHealthRepository, 'recordOk' | 'recordError'>;

interface HealthRow {
  provider: string;
  state: ProviderHealth['state'];
  last_ok_at: Date | null;
  last_error_at: Date | null;
  last_error_code: string | null;
  balance_micros: string | null;
  balance_currency: string | null;
  balance_at: Date | null;
  last_sync_at: Date | null;
  updated_at: Date;
}

const WRITE_EVERY_MS = 1_000;

/**
 * Provider health for operators. Best effort: callers do not wait for the writes, and a failed one is logged. Each
 * process writes at most one result per provider and second, unless the result has changed.
 */
export class ProviderHealthRepository {
  private readonly lastOutcomes = new Map<string, { outcome: string; atMs: number }>();

  constructor(
    private readonly manager: EntityManager,
    private readonly logger: Pick<Logger, 'warn'>,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  recordOk(provider: string): void {
    if (!this.isWorthWriting(provider, 'ok')) return;
    this.write(
      `INSERT INTO provider_health AS health (provider, state, last_ok_at) VALUES ($1, 'ok', clock_timestamp())
       ON CONFLICT (provider) DO UPDATE
         SET state = 'ok', last_ok_at = clock_timestamp(), updated_at = clock_timestamp()`,
      [provider],
    );
  }

  /** `code` is a short word such as `timeout` or `http_503`, never a provider's text. */
  recordError(provider: string, code: string): void {
    if (!this.isWorthWriting(provider, 'failing')) return;
    this.write(
      `INSERT INTO provider_health AS health (provider, state, last_error_at, last_error_code)
       VALUES ($1, 'failing', clock_timestamp(), $2)
       ON CONFLICT (provider) DO UPDATE
         SET state = 'failing', last_error_at = clock_timestamp(), last_error_code = $2,
             updated_at = clock_timestamp()`,
      [provider, code],
    );
  }

  recordBalance(provider: string, balance: ProviderCost): void {
    this.write(
      `INSERT INTO provider_health AS health (provider, balance_micros, balance_currency, balance_at)
       VALUES ($1, $2, $3, clock_timestamp())
       ON CONFLICT (provider) DO UPDATE
         SET balance_micros = $2, balance_currency = $3, balance_at = clock_timestamp(),
             updated_at = clock_timestamp()`,
      [provider, balance.micros, balance.currency],
    );
  }

  /** The provider's catalog was read completely. */
  recordSync(provider: string): void {
    this.write(
      `INSERT INTO provider_health AS health (provider, last_sync_at) VALUES ($1, clock_timestamp())
       ON CONFLICT (provider) DO UPDATE SET last_sync_at = clock_timestamp(), updated_at = clock_timestamp()`,
      [provider],
    );
  }

  async list(): Promise<readonly ProviderHealth[]> {
    const { rows } = await sql<HealthRow>(
      this.manager,
      `SELECT provider, state, last_ok_at, last_error_at, last_error_code, balance_micros, balance_currency, balance_at,
         last_sync_at, updated_at
       FROM provider_health ORDER BY provider`,
    );
    return rows.map(toHealth);
  }

  private isWorthWriting(provider: string, outcome: string): boolean {
    const last = this.lastOutcomes.get(provider);
    const nowMs = this.nowMs();
    if (last?.outcome === outcome && nowMs - last.atMs < WRITE_EVERY_MS) return false;
    this.lastOutcomes.set(provider, { outcome, atMs: nowMs });
    return true;
  }

  private write(text: string, parameters: readonly (string | number)[]): void {
    sql(this.manager, text, parameters).catch((error: unknown) =>
      this.logger.warn({ event: 'provider.health_not_written', err: toLoggableError(error) }),
    );
  }
}

function toHealth(row: HealthRow): ProviderHealth {
  const micros = toSafeIntegerOrNull(row.balance_micros);
  return {
    provider: row.provider,
    state: row.state,
    lastOkAt: row.last_ok_at,
    lastErrorAt: row.last_error_at,
    lastErrorCode: row.last_error_code,
    balance: micros === null ? null : { micros, currency: row.balance_currency! },
    balanceAt: row.balance_at,
    lastSyncAt: row.last_sync_at,
    updatedAt: row.updated_at,
  };
}
