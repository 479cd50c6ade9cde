import type { EntityManager } from 'typeorm';
import { timeOfId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import { isUndefinedTable, prepared, sql } from '../infra/database/index.js';
import { type DailyTable, dayOf, partitionName } from '../infra/partition-days.js';

/** Tables whose daily partitions hold a mode's events, by the time in the id. */
export const EVENT_TABLES: Readonly<Record<Mode, string>> = {
  sandbox: 'events_sandbox',
  live: 'events_live',
};

export function eventTable(mode: Mode): string {
  return EVENT_TABLES[mode];
}

/**
 * The daily partitions of both modes and their retention (D44).
 * @param isNeeded whether an unsent delivery needs an event of the day, which is then kept (D32)
 */
export function eventDays(
  retentionDays: Readonly<Record<Mode, number>>,
  isNeeded: (mode: Mode) => NonNullable<DailyTable['isNeeded']>,
): readonly DailyTable[] {
  return (['sandbox', 'live'] as const).map((mode) => ({
    table: eventTable(mode),
    ranges: { idPrefix: 'evt' },
    retentionDays: retentionDays[mode],
    isNeeded: isNeeded(mode),
  }));
}

/**
 * Stored bodies of events by id. Reads the partitions directly, because `events` does not show a day while it is
 * detached (before it is dropped or attached again). Events of dropped days are missing from the result.
 */
export async function readBodiesInTheirDays(
  manager: EntityManager,
  mode: Mode,
  eventIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const days = Map.groupBy(eventIds, (id) => partitionName(eventTable(mode), dayOf(timeOfId(id))));
  const bodies = new Map<string, string>();
  for (const [day, ids] of days)
    for (const { id, body } of await readDay(manager, day, ids)) bodies.set(id, body);
  return bodies;
}

async function readDay(
  manager: EntityManager,
  day: string,
  ids: readonly string[],
): Promise<readonly { id: string; body: string }[]> {
  try {
    const text = `SELECT id, body FROM ${day} WHERE id = ANY ($1::text[])`;
    return (await sql<{ id: string; body: string }>(manager, prepared(text), [ids])).rows;
  } catch (error) {
    if (isUndefinedTable(error)) return [];
    throw error;
  }
}
