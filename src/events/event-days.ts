import type { Mode } from '../common/mode.js';
import type { DailyTable } from '../infra/partition-days.js';

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
