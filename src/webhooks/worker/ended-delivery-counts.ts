import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { isUndefinedTable, readWithin, sql } from '../../infra/database/index.js';
import { dayOf, dayOfPartition } from '../../infra/partition-days.js';
import { DELIVERY_TABLES } from '../delivery-days.js';
import type { DeliveryCount } from './backlog.repository.js';

/** Time limit per day: a partition holds all deliveries of a day and is read in full. */
const DAY_LIMIT_MS = 60_000;
/** Today and yesterday change constantly, and PostgreSQL's statistics lag by up to a minute. */
const YOUNG_DAYS = 1;

/** A day's partition and its number of writes so far, from PostgreSQL's statistics. */
interface DayPartition {
  readonly name: string;
  readonly isYoung: boolean;
  readonly changes: string;
}

interface CountedDay {
  readonly changes: string;
  readonly counts: readonly DeliveryCount[];
}

/**
 * Counts retained ended deliveries by kind and status (D33). Each day is counted and cached separately, and an old day
 * is recounted only after a change: counting everything would read the whole table, however large.
 */
@Injectable()
export class EndedDeliveryCounts {
  private readonly counted = new Map<string, CountedDay>();

  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** @throws Error when a day exceeds DAY_LIMIT_MS; days counted before it stay cached */
  async read(): Promise<readonly DeliveryCount[]> {
    const days = await this.listDays();
    const names = new Set(days.map(({ name }) => name));
    for (const name of this.counted.keys()) if (!names.has(name)) this.counted.delete(name);
    for (const day of days) await this.countUnlessKnown(day);
    return [...this.counted.values()].flatMap(({ counts }) => counts);
  }

  private async listDays(): Promise<readonly DayPartition[]> {
    const tables = Object.values(DELIVERY_TABLES);
    const { rows } = await sql<{ name: string; changes: string; now: Date }>(
      this.manager,
      `SELECT c.relname AS name, statement_timestamp() AS now,
              concat_ws(' ', c.oid, pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid),
                        pg_stat_get_tuples_deleted(c.oid)) AS changes
       FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
       WHERE i.inhparent = ANY ($1::text[]::regclass[]) AND NOT i.inhdetachpending`,
      [tables],
    );
    return rows.flatMap(({ name, changes, now }) => {
      const day = tables.map((table) => dayOfPartition(table, name)).find((found) => found !== null);
      return day ? [{ name, changes, isYoung: day >= dayOf(now, -YOUNG_DAYS) }] : [];
    });
  }

  private async countUnlessKnown({ name, changes, isYoung }: DayPartition): Promise<void> {
    if (!isYoung && this.counted.get(name)?.changes === changes) return;
    try {
      this.counted.set(name, { changes, counts: await this.count(name) });
    } catch (error) {
      // Dropped since the days were listed.
      if (!isUndefinedTable(error)) throw error;
      this.counted.delete(name);
    }
  }

  /** `partition` is a name that `dayOfPartition` knows: lower case, no quotes. */
  private count(partition: string): Promise<readonly DeliveryCount[]> {
    const count = async (manager: EntityManager): Promise<readonly DeliveryCount[]> => {
      const { rows } = await sql<DeliveryCount>(
        manager,
        `SELECT kind, status, count(*)::int AS count FROM ${partition} GROUP BY 1, 2`,
      );
      return rows;
    };
    return readWithin(this.manager, count, DAY_LIMIT_MS);
  }
}
