import { usageError } from '../exit-codes.js';
import type { FeedPosition } from './cursor-file.js';
import type { FeedReader } from './feed-reader.js';

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Where a listener without a saved position starts: `now`, `beginning`, a time such as `2h` ago, or right after a given
 * event.
 */
export type Since =
  | { readonly kind: 'beginning' }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'event'; readonly id: string };

/**
 * @param nowMs start of the command by the service's clock
 * @throws CliError for an unknown value
 */
export function parseSince(text: string, nowMs: number): Since {
  if (text === 'beginning') return { kind: 'beginning' };
  if (text === 'now') return { kind: 'time', ms: nowMs };
  if (/^evt_[0-9A-Z]{26}$/.test(text)) return { kind: 'event', id: text };
  const [, count, unit] = /^(\d{1,4})([mhd])$/.exec(text) ?? [];
  if (count !== undefined && (unit === 'm' || unit === 'h' || unit === 'd')) {
    return { kind: 'time', ms: nowMs - Number(count) * UNITS_MS[unit] };
  }
  throw usageError(
    `--since cannot be "${text}"`,
    'Use now, beginning, an event id (evt_…), or a duration such as 30m, 2h or 7d.',
  );
}

/**
 * Finds the position to start at. The feed can only be read from the front, so `now` and a time read the skipped
 * events, 100 per call. Events that arrive during the search are newer than the time, so they are not skipped.
 * @param onSkipped receives the count so far
 */
export async function startingPoint(
  feed: FeedReader,
  since: Since,
  onSkipped: (count: number) => void,
): Promise<FeedPosition> {
  if (since.kind === 'beginning') return { page: null, event: null };
  if (since.kind === 'event') return { page: null, event: since.id };
  let position: FeedPosition = { page: null, event: null };
  for (let skipped = 0; ;) {
    const page = await feed.page(position, false);
    const firstWanted = page.events.findIndex((event) => Date.parse(event.created_at) >= since.ms);
    if (firstWanted >= 0) {
      return { page: position.page, event: page.events[firstWanted - 1]?.id ?? null };
    }
    skipped += page.events.length;
    onSkipped(skipped);
    position = { page: page.next, event: null };
    if (!page.hasMore) return position;
  }
}
