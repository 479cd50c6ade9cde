import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, type Tx } from '../infra/database/index.js';

/** One restore of the database to an earlier time, and the progress of its repair. */
export interface RestoreEpoch {
  readonly id: number;
  readonly restoredTo: Date;
  /** From this time on writes are refused, and no order or top-up is processed. */
  readonly openedAt: Date;
  /** Null until positions and versions were moved, and open rows were marked for a lookup before placement. */
  readonly movedAt: Date | null;
  readonly completedAt: Date | null;
}

/** Changes of a repair in the restored rows. */
export interface MovedRows {
  /** Live rows that their providers may know, although the restored rows say that nothing was sent. */
  readonly orders: number;
  readonly topups: number;
  /** Portal sessions that were ended, because those revoked in the lost time would otherwise be valid again. */
  readonly sessions: number;
}

interface EpochRow {
  id: number;
  restored_to: Date;
  opened_at: Date;
  moved_at: Date | null;
  completed_at: Date | null;
}

/** Connection names of worker roles as set by `openProcess`: of a separate worker, and of `npm start`. */
const WORKERS = '^partner-esim-(all-)?worker';
/** Versions restart at the seconds since this time, because a counter would be restored with the database. */
const VERSIONS_SINCE = '2025-01-01T00:00:00Z';

/** SQL of `restore_epochs`, and of a repair's changes in other tables (D54). */
@Injectable()
export class RestoreEpochsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  async findOpen(): Promise<RestoreEpoch | null> {
    const { rows } = await sql<EpochRow>(
      this.manager,
      'SELECT id, restored_to, opened_at, moved_at, completed_at FROM restore_epochs WHERE completed_at IS NULL',
    );
    return rows[0] ? toEpoch(rows[0]) : null;
  }

  async findLast(): Promise<RestoreEpoch | null> {
    const { rows } = await sql<EpochRow>(
      this.manager,
      'SELECT id, restored_to, opened_at, moved_at, completed_at FROM restore_epochs ORDER BY id DESC LIMIT 1',
    );
    return rows[0] ? toEpoch(rows[0]) : null;
  }

  /** Starts to refuse writes; returns the open restore if there is one. */
  async open(restoredTo: Date): Promise<RestoreEpoch> {
    await sql(
      this.manager,
      'INSERT INTO restore_epochs (restored_to) VALUES ($1) ON CONFLICT ((true)) WHERE completed_at IS NULL DO NOTHING',
      [restoredTo],
    );
    return (await this.findOpen())!;
  }

  /** Replaces the open restore: its time was wrong, or another restore has followed. */
  async replace(tx: Tx, id: number, restoredTo: Date): Promise<void> {
    await sql(tx.manager, 'UPDATE restore_epochs SET completed_at = now() WHERE id = $1', [id]);
    await sql(tx.manager, 'INSERT INTO restore_epochs (restored_to) VALUES ($1)', [restoredTo]);
  }

  async complete(id: number): Promise<void> {
    await sql(this.manager, 'UPDATE restore_epochs SET completed_at = now() WHERE id = $1', [id]);
  }

  /** Number of worker connections to this database. */
  async countWorkers(): Promise<number> {
    const { rows } = await sql<{ count: number }>(
      this.manager,
      `SELECT count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND application_name ~ $1`,
      [WORKERS],
    );
    return rows[0]!.count;
  }

  /** Milliseconds since writes were first refused, by the database's clock. */
  async openForMs(id: number): Promise<number> {
    const { rows } = await sql<{ ms: number }>(
      this.manager,
      'SELECT (extract(epoch FROM clock_timestamp() - opened_at) * 1000)::float8 AS ms FROM restore_epochs WHERE id = $1',
      [id],
    );
    return rows[0]!.ms;
  }

  /**
   * Marks open Live rows, about which the provider may know more: they are looked up before placement, and
   * cancellations are looked up before they are sent. Ends sessions, because users locked out since the restored time
   * must stay out.
   */
  async distrustRows(tx: Tx): Promise<MovedRows> {
    const orders = await sql(
      tx.manager,
      `UPDATE orders SET upstream_placed_at = coalesce(upstream_placed_at, now()),
         upstream_attempts = greatest(upstream_attempts, 1)
       WHERE mode = 'live' AND next_attempt_at IS NOT NULL AND status IN ('pending', 'processing', 'canceling')`,
    );
    const topups = await sql(
      tx.manager,
      `UPDATE topups SET upstream_placed_at = coalesce(upstream_placed_at, now())
       WHERE mode = 'live' AND next_attempt_at IS NOT NULL AND status IN ('pending', 'processing')`,
    );
    // The effect is looked for instead of sending the action again (D70).
    await sql(
      tx.manager,
      'UPDATE esims SET action_sent_at = coalesce(action_sent_at, now()) WHERE action_due_at IS NOT NULL',
    );
    const sessions = await sql(
      tx.manager,
      'UPDATE portal_sessions SET revoked_at = now() WHERE revoked_at IS NULL AND expires_at > now()',
    );
    return { orders: orders.affected, topups: topups.affected, sessions: sessions.affected };
  }

  /** Gives the next change of every object a greater version than any that partners have seen (D48). */
  async raiseVersions(tx: Tx): Promise<void> {
    const { rows } = await sql<{ floor: number }>(
      tx.manager,
      'SELECT floor(extract(epoch FROM clock_timestamp() - $1::timestamptz))::int AS floor',
      [VERSIONS_SINCE],
    );
    const floor = Number(rows[0]!.floor);
    if (!Number.isSafeInteger(floor)) throw new RangeError('the clock of the database is no number');
    await sql(
      tx.manager,
      `CREATE OR REPLACE FUNCTION version_floor() RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT ${floor}'`,
    );
  }

  async markMoved(tx: Tx, id: number): Promise<void> {
    await sql(tx.manager, 'UPDATE restore_epochs SET moved_at = now() WHERE id = $1', [id]);
  }
}

function toEpoch(row: EpochRow): RestoreEpoch {
  return {
    id: row.id,
    restoredTo: row.restored_to,
    openedAt: row.opened_at,
    movedAt: row.moved_at,
    completedAt: row.completed_at,
  };
}
