import { setTimeout as delay } from 'node:timers/promises';
import type { Counter, Registry } from 'prom-client';
import type { Logger } from 'pino';
import type { DataSource, QueryRunner } from 'typeorm';
import { counterIn } from '../metrics.js';

/** A standby that keeps up shows a commit within a few of these. */
const LOOK_EVERY_MS = 5;
/** Then the primary is asked: a list that is late costs more than one that the primary reads. */
const PATIENCE_MS = 100;
/** After a failure nobody waits for the standby for so long. */
const AWAY_FOR_MS = 5_000;

type Outcome = 'read' | 'behind' | 'away';

/** What the two servers, and who watches them, are. */
export interface StandbySettings {
  readonly primary: DataSource;
  readonly metrics: Registry;
  readonly logger: Pick<Logger, 'warn'>;
  /** Called when it is first needed: a standby that is away keeps nobody from starting. */
  open(): Promise<DataSource>;
}

/**
 * Reads of lists from a standby that are never older than what was committed before them, by whichever process (D55): the
 * primary says how far its log is, and the standby is read once it has replayed that far. One that lags or is away is
 * left out, and the primary is read instead.
 */
export class Standby {
  private awayUntilMs = -Infinity;
  /** How far the standby was when it was looked at last. */
  private lastReplayed: string | null = null;
  private opening: Promise<DataSource> | null = null;
  private readonly outcomes: Counter<'outcome'>;

  constructor(private readonly settings: StandbySettings) {
    this.outcomes = counterIn(settings.metrics, {
      name: 'standby_reads_total',
      help: 'Lists that were to be read from the standby: read from it, or from the primary as it was behind or away.',
      labelNames: ['outcome'],
    });
  }

  /** Runs `read` with a connection to the standby, or with null: then from the primary. It may be run twice. */
  async read<T>(read: (runner: QueryRunner | null) => Promise<T>): Promise<T> {
    const runner = await this.caughtUp();
    if (runner === null) return read(null);
    try {
      const result = await read(runner);
      this.outcomes.inc({ outcome: 'read' });
      return result;
    } catch (error) {
      // It may have been canceled for what the standby had to replay: what is wrong in itself fails at the primary, too.
      this.note('away', error);
      return await read(null);
    } finally {
      await runner.release();
    }
  }

  /** To be called when the process ends. */
  async close(): Promise<void> {
    const opened = await this.opening?.catch(() => null);
    await opened?.destroy();
  }

  /** A connection to the standby that shows what was committed before this call; null when there is none in time. */
  private async caughtUp(): Promise<QueryRunner | null> {
    if (performance.now() < this.awayUntilMs) {
      this.outcomes.inc({ outcome: 'away' });
      return null;
    }
    let runner: QueryRunner | null = null;
    try {
      runner = (await this.open()).createQueryRunner();
      this.lastReplayed ??= await replayedOf(runner);
      const position = await this.positionOfPrimary();
      if (position === null) throw new Error('the standby has another history than the primary');
      if (await this.hasReplayed(runner, position)) return runner;
      this.note('behind');
    } catch (error) {
      this.note('away', error);
    }
    await runner?.release();
    return null;
  }

  /**
   * What was answered to a caller is flushed, and not only written. Null when the standby was further before: then it
   * follows another server, or one from before a restore.
   */
  private async positionOfPrimary(): Promise<string | null> {
    const [row] = await this.settings.primary.query<[{ position: string; follows: boolean }]>(
      'SELECT p::text AS position, p >= coalesce($1::pg_lsn, p) AS follows FROM pg_current_wal_flush_lsn() AS p',
      [this.lastReplayed],
    );
    return row.follows ? row.position : null;
  }

  private async hasReplayed(runner: QueryRunner, position: string): Promise<boolean> {
    const deadlineMs = performance.now() + PATIENCE_MS;
    for (;;) {
      const [row] = (await runner.query(
        'SELECT r::text AS replayed, pg_is_in_recovery() AND r >= $1::pg_lsn AS shown FROM pg_last_wal_replay_lsn() AS r',
        [position],
      )) as [{ readonly replayed: string | null; readonly shown: boolean | null }];
      this.lastReplayed = row.replayed;
      if (row.shown === true) return true;
      if (performance.now() > deadlineMs) return false;
      await delay(LOOK_EVERY_MS);
    }
  }

  private open(): Promise<DataSource> {
    this.opening ??= this.settings.open().catch((error: unknown) => {
      this.opening = null;
      throw error;
    });
    return this.opening;
  }

  private note(outcome: Exclude<Outcome, 'read'>, error?: unknown): void {
    this.outcomes.inc({ outcome });
    if (outcome === 'behind') return;
    this.awayUntilMs = performance.now() + AWAY_FOR_MS;
    this.settings.logger.warn(
      { event: 'database.standby_away', err: error },
      'the standby is not read for five seconds; the primary is',
    );
  }
}

/** Null of a server that is no standby (any more): it shows what it has, and nobody knows what that is. */
async function replayedOf(runner: QueryRunner): Promise<string | null> {
  const [row] = (await runner.query('SELECT pg_last_wal_replay_lsn()::text AS replayed')) as [
    { readonly replayed: string | null },
  ];
  return row.replayed;
}
