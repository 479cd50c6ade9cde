import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { ChaosBed, ChaosPartner, Mode } from './bed.js';
import type { Random } from './random.js';

export interface AcceptedOrder {
  readonly orderId: string;
  readonly partnerId: string;
  readonly mode: Mode;
  readonly quantity: number;
}

interface Purchase {
  readonly key: string;
  readonly partner: ChaosPartner;
  readonly mode: Mode;
  readonly body: string;
  readonly quantity: number;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

const TICK_MS = 10;
const CALL_LIMIT_MS = 15_000;
/**
 * A caller waits this long before it repeats a call, then twice as long each time, so that hundreds of waiting callers
 * do not become a load of their own.
 */
const PAUSE_MS = { first: 250, longest: 5_000 };
/** A caller retries for this long, which exceeds the longest outage of a storm. */
const INSIST_MS = 300_000;
/** Share of accepted purchases that the caller posts again. */
const REPEATED = 0.1;

/**
 * Partners that order at a fixed rate. Each wants every purchase exactly once, so it repeats a failed call, usually at
 * the other API and with the same Idempotency-Key, until it gets a final response (D18).
 */
export class Load {
  /** Every order accepted with 202, by Idempotency-Key. */
  readonly accepted = new Map<string, AcceptedOrder>();
  /** Responses that no partner should ever receive, with counts. */
  readonly wrong = new Map<string, number>();
  begun = 0;
  refused = 0;
  unanswered = 0;
  /** Calls that were cut off or received a retryable error. */
  repeats = 0;
  /** Errors of the repeated calls, with counts. */
  readonly failures = new Map<string, number>();
  /** Start and duration of every call that got a response, in milliseconds of `performance.now()`. */
  readonly answers: { readonly atMs: number; readonly ms: number }[] = [];
  private readonly agent = new Agent({ connections: 64 });
  private readonly underWay = new Set<Promise<void>>();
  private turn = 0;

  constructor(
    private readonly bed: ChaosBed,
    private readonly random: Random,
  ) {}

  /** Starts purchases until `signal` aborts or `maxOrders` is reached, then waits for the purchases in progress. */
  async run(perSecond: number, maxOrders: number, signal: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    const isDue = (): boolean => startedAt + (this.begun * 1_000) / perSecond <= performance.now();
    while (!signal.aborted && this.begun < maxOrders) {
      for (; this.begun < maxOrders && isDue(); this.begun++) {
        const work = this.buy(this.nextPurchase());
        this.underWay.add(work);
        void work.finally(() => this.underWay.delete(work));
      }
      await sleep(TICK_MS);
    }
    await Promise.all(this.underWay);
    await this.agent.close();
  }

  get waiting(): number {
    return this.underWay.size;
  }

  private nextPurchase(): Purchase {
    const mode: Mode = this.random.chance(0.5) ? 'live' : 'sandbox';
    const quantity = this.random.between(1, 3);
    const packageId = this.random.pick(this.bed.packages[mode]);
    const days = /daily$/i.test(packageId) ? { days: this.random.between(1, 30) } : {};
    const body = JSON.stringify({ package_id: packageId, quantity, ...days });
    return { key: randomUUID(), partner: this.random.pick(this.bed.partners), mode, body, quantity };
  }

  private async buy(purchase: Purchase): Promise<void> {
    const isRepeated = this.random.chance(REPEATED);
    const orderId = await this.insist(purchase);
    if (orderId === null) return;
    const { partner, mode, quantity } = purchase;
    this.accepted.set(purchase.key, { orderId, partnerId: partner.id, mode, quantity });
    if (!isRepeated) return;
    const again = await this.insist(purchase);
    if (again !== null && again !== orderId) this.complain('a repeated POST created another order');
  }

  /** @returns the order's id, or null if the purchase was refused or got no response in time */
  private async insist(purchase: Purchase): Promise<string | null> {
    const deadline = performance.now() + INSIST_MS;
    for (let pauseMs = PAUSE_MS.first; performance.now() < deadline;) {
      const answer = await this.call(purchase);
      if (answer?.status === 202) return (JSON.parse(answer.text) as { data: { id: string } }).data.id;
      if (answer && isRepeatable(answer.text)) count(this.failures, answer.text.slice(0, 120));
      else if (answer) {
        // The service refuses withdrawn and sold-out packages. Such a purchase creates no order and costs nothing.
        if (answer.status === 409 || answer.status === 422 || answer.status === 404) this.refused++;
        else this.complain(`${answer.status} ${answer.text.slice(0, 160)}`);
        return null;
      }
      this.repeats++;
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS.longest);
    }
    this.unanswered++;
    return null;
  }

  private async call({ key, partner, mode, body }: Purchase): Promise<Answer | null> {
    const api = this.bed.apiFor(this.turn++);
    const atMs = performance.now();
    try {
      const answer = await request(`${api.url}/v1/orders`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${partner.keys[mode]}`,
          'content-type': 'application/json',
          'idempotency-key': key,
        },
        body,
        dispatcher: this.agent,
        signal: AbortSignal.timeout(CALL_LIMIT_MS),
      });
      const text = await answer.body.text();
      this.answers.push({ atMs, ms: performance.now() - atMs });
      return { status: answer.statusCode, text };
    } catch (error) {
      count(this.failures, (error as NodeJS.ErrnoException).code ?? (error as Error).name);
      return null;
    }
  }

  private complain(what: string): void {
    count(this.wrong, what);
  }
}

/** Repeat an error response only if it says that it is retryable (D6). Without a JSON body, repeat it. */
function isRepeatable(text: string): boolean {
  try {
    return (JSON.parse(text) as { retryable?: unknown }).retryable === true;
  } catch {
    return true;
  }
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

interface FeedPage {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

const POLL_PAUSE_MS = 500;

/** A partner that polls its feed and stores only the cursor, so an event missed once is never seen (D39). */
export class FeedReader {
  readonly seen = new Set<string>();
  /** Events received a second time. */
  repeated = 0;
  /** Polls that returned no page. */
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
      if (hasMore !== true) await sleep(POLL_PAUSE_MS);
    }
  }

  /**
   * Reads to the end of the feed. A busy machine may fail a page, so each is read again, as purchases are.
   * @throws Error when a page cannot be read
   */
  async finish(): Promise<void> {
    let failingSince: number | null = null;
    for (let hasMore = true; hasMore;) {
      try {
        hasMore = await this.readPage();
        failingSince = null;
      } catch (error) {
        failingSince ??= performance.now();
        if (performance.now() - failingSince > INSIST_MS) throw error;
        await sleep(POLL_PAUSE_MS);
      }
    }
  }

  /** @returns whether more pages follow */
  private async readPage(): Promise<boolean> {
    const api = this.bed.apiFor(this.polls++);
    const after = this.cursor === null ? '' : `&after=${encodeURIComponent(this.cursor)}`;
    const answer = await fetch(`${api.url}/v1/events?limit=100${after}`, {
      headers: { authorization: `Bearer ${this.partner.keys[this.mode]}` },
      signal: AbortSignal.timeout(10_000),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`the feed returned ${answer.status} ${text}`);
    const page = JSON.parse(text) as FeedPage;
    for (const { id } of page.data) {
      if (this.seen.has(id)) this.repeated++;
      this.seen.add(id);
    }
    this.cursor = page.next_cursor ?? this.cursor;
    return page.has_more;
  }
}
