import { setTimeout as sleep } from 'node:timers/promises';
import { ChildLink } from '../child-link.js';

export type ReceiverQuestion =
  | { readonly do: 'listen'; readonly count: number }
  | { readonly do: 'watch'; readonly endpoints: readonly number[] }
  | { readonly do: 'hang'; readonly endpoints: readonly number[] }
  | { readonly do: 'reset' | 'count' | 'arrivals' };

/** What came to one endpoint since `reset`; times are of the machine's clock. */
export interface Seen {
  requests: number;
  connections: number;
  firstAtMs: number;
  lastAtMs: number;
}

export interface Counts {
  /** By endpoint. */
  readonly seen: readonly Seen[];
  /** Different events that came to the watched endpoints. */
  readonly arrived: number;
  readonly duplicates: number;
}

export type ReceiverAnswer =
  | Counts
  | { readonly ports: readonly number[] }
  | { readonly arrivals: readonly (readonly [number: number, atMs: number])[] }
  | Record<string, never>;

const LOOK_EVERY_MS = 50;

/** The partners' servers, in a process of their own. */
export class Receiver {
  private constructor(
    private readonly link: ChildLink<ReceiverQuestion, ReceiverAnswer>,
    /** One per endpoint, each an origin of its own. */
    readonly urls: readonly string[],
  ) {}

  static async start(endpoints: number): Promise<Receiver> {
    const link = ChildLink.start<ReceiverQuestion, ReceiverAnswer>(
      new URL('./receiver.child.js', import.meta.url),
    );
    const { ports } = (await link.ask({ do: 'listen', count: endpoints })) as { ports: number[] };
    return new Receiver(
      link,
      ports.map((port) => `http://127.0.0.1:${port}/webhooks`),
    );
  }

  get pid(): number {
    return this.link.pid;
  }

  /** From now on notes when each event comes first to one of these endpoints, and forgets those before. */
  async watch(endpoints: readonly number[]): Promise<void> {
    await this.link.ask({ do: 'watch', endpoints });
  }

  /** Counts from nought again. */
  async reset(): Promise<void> {
    await this.link.ask({ do: 'reset' });
  }

  /** These endpoints do not answer from now on; requests that hang elsewhere are answered. */
  async hang(endpoints: readonly number[]): Promise<void> {
    await this.link.ask({ do: 'hang', endpoints });
  }

  async counts(): Promise<Counts> {
    return (await this.link.ask({ do: 'count' })) as Counts;
  }

  /** When each event came first, by its number. */
  async arrivals(): Promise<ReadonlyMap<number, number>> {
    const { arrivals } = (await this.link.ask({ do: 'arrivals' })) as { arrivals: [number, number][] };
    return new Map(arrivals);
  }

  /** Waits until `done`. @throws Error when nothing comes for `patienceMs` */
  async until(done: (counts: Counts) => boolean, patienceMs = 30_000): Promise<Counts> {
    let lastTotal = -1;
    let deadline = 0;
    for (;;) {
      const counts = await this.counts();
      if (done(counts)) return counts;
      const total = totalOf(counts);
      if (total !== lastTotal) deadline = performance.now() + patienceMs;
      else if (performance.now() > deadline) throw new Error(`webhooks stopped coming after ${total}`);
      lastTotal = total;
      await sleep(LOOK_EVERY_MS);
    }
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}

export function totalOf({ seen }: Counts): number {
  return seen.reduce((sum, one) => sum + one.requests, 0);
}

/** Share of requests on a connection that was there before, percent. */
export function reusePercentOf(before: Counts | null, after: Counts): number {
  const connections = connectionsOf(after) - (before ? connectionsOf(before) : 0);
  const requests = totalOf(after) - (before ? totalOf(before) : 0);
  return Math.max(0, (1 - connections / requests) * 100);
}

function connectionsOf({ seen }: Counts): number {
  return seen.reduce((sum, one) => sum + one.connections, 0);
}
