import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBed, ChaosPartner, Mode } from './bed.js';

interface FeedPage {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

const PAUSE_MS = 500;

/** A partner that polls its feed and keeps nothing but the cursor: what it misses once, it never sees (D39). */
export class FeedReader {
  readonly seen = new Set<string>();
  /** Events that came a second time. */
  repeated = 0;
  /** Polls that had no page. */
  failed = 0;
  private polls = 0;
  private cursor: string | null = null;

  constructor(
    private readonly bed: ChaosBed,
    readonly partner: ChaosPartner,
    readonly mode: Mode,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const hasMore = await this.readPage().catch(() => void this.failed++);
      if (hasMore !== true) await sleep(PAUSE_MS);
    }
  }

  /** Reads to the end of the feed. @throws Error when it cannot */
  async finish(): Promise<void> {
    while (await this.readPage());
  }

  /** True: there is more. */
  private async readPage(): Promise<boolean> {
    const api = this.bed.apiFor(this.polls++);
    const after = this.cursor === null ? '' : `&after=${encodeURIComponent(this.cursor)}`;
    const answer = await fetch(`${api.url}/v1/events?limit=100${after}`, {
      headers: { authorization: `Bearer ${this.partner.keys[this.mode]}` },
      signal: AbortSignal.timeout(10_000),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`the feed answers ${answer.status} ${text}`);
    const page = JSON.parse(text) as FeedPage;
    for (const { id } of page.data) {
      if (this.seen.has(id)) this.repeated++;
      this.seen.add(id);
    }
    this.cursor = page.next_cursor ?? this.cursor;
    return page.has_more;
  }
}
