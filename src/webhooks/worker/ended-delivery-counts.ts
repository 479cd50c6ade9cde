import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { isUndefinedTable, readWithin, sql } from '../../infra/database/index.js';
import { dayOf, dayOfPartition } from '../../infra/partition-days.js';
import { DELIVERY_TABLES } from '../delivery-days.js';
import type { DeliveryCount } from './backlog.repository.js';

/** Of one day: it has as many rows as the service has deliveries a day, and is read whole. */
const DAY_LIMIT_MS = 60_000;
/** Today and yesterday change all the time, and PostgreSQL's statistics are up to a minute late. */
const YOUNG_DAYS = 1;

/** A day's partition, and how many rows PostgreSQL has written, changed and deleted in it so far. */
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
 * Deliveries that have ended and are kept, by kind and status (D33). Each day is counted by itself and kept, an old one is
 * counted again only when something has changed in it: a count of all would read the whole table, however large.
 */
@Injectable()
export class EndedDeliveryCounts {
  private readonly counted = new Map<string, CountedDay>();

  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** @throws Error when a day takes longer than DAY_LIMIT_MS; the days counted before it stay counted */
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
