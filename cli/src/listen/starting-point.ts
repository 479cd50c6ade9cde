import { usageError } from '../exit-codes.js';
import type { FeedPosition } from './cursor-file.js';
import type { FeedReader } from './feed-reader.js';

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Where a listener begins that has no position yet: `now`, `beginning`, `2h`, or behind an event. */
export type Since =
  | { readonly kind: 'beginning' }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'event'; readonly id: string };

/** @param nowMs when the command started, by the service's clock. @throws CliError for anything else */
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
 * The position to begin at. The feed has no way to its end but through it, so `now` and a time read what is skipped,
 * a hundred events a call; `onSkipped` receives the count so far. Events that arrive meanwhile are not skipped: they are newer
 * than the time.
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
