import type { EntityManager } from 'typeorm';
import { timeOfId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import { isUndefinedTable, sql } from '../infra/database/index.js';
import { type DailyTable, dayOf, partitionName } from '../infra/partition-days.js';

/** Whose partitions are the days of a mode's events, by the time of the id. */
export const EVENT_TABLES: Readonly<Record<Mode, string>> = {
  sandbox: 'events_sandbox',
  live: 'events_live',
};

export function eventTable(mode: Mode): string {
  return EVENT_TABLES[mode];
}

/**
 * The days of both modes and how long they are kept (D44).
 * @param isNeeded whether something that is not sent yet needs an event of the day: such a day stays (D32)
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
 * The stored bytes of an event, read from the table of its day itself: while a day is detached, before it is dropped or
 * attached again, `events` does not show it. Null when the day is gone.
 */
export async function readBodyInItsDay(
  manager: EntityManager,
  mode: Mode,
  eventId: string,
): Promise<string | null> {
  const day = partitionName(eventTable(mode), dayOf(timeOfId(eventId)));
  try {
    const { rows } = await sql<{ body: string }>(manager, `SELECT body FROM ${day} WHERE id = $1`, [eventId]);
    return rows[0]?.body ?? null;
  } catch (error) {
    if (isUndefinedTable(error)) return null;
    throw error;
  }
}
