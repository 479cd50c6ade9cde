import { EVENT_TYPES } from '../../api/types.ts';

export const TYPE_OPTIONS = EVENT_TYPES.map((type) => [type, type] as const);

/** Choices of an endpoint's event types. */
export const SUBSCRIPTION_OPTIONS = [['*', 'Every type, including future ones'], ...TYPE_OPTIONS] as const;

export const SUBSCRIPTION_HINT =
  'Select none to receive the defaults: the first seven types, and never another one.';

export const LEVELS_HINT = 'Percentages of the data, such as 25, 90. At each one, esim.usage.level is sent.';

/** The percentages in the text of a field; null for none. The service checks them. */
export function levelsOf(text: string): number[] | null {
  const levels = text.split(/[\s,;%]+/).filter(Boolean);
  return levels.length === 0 ? null : levels.map(Number);
}

/** The event types of an endpoint in a line of text. */
export function namesOf(eventTypes: readonly string[] | null): string {
  if (eventTypes === null) return 'Default event types';
  return eventTypes.includes('*') ? 'All event types' : eventTypes.join(', ');
}
