import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Logger } from 'pino';
import { type Mode, perMode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { LOGGER } from '../infra/logging.js';
import { EventFeed } from './event-feed.js';
import { type AwaitedEvents, EventsRepository } from './events.repository.js';

/** Maximum concurrent waiting calls per key in one process. Another call returns at once (D39). */
export const MAX_WAITING_PER_KEY = 8;
/** Maximum per partner and mode, so that several keys, or a key and its successor, give a partner no more room. */
export const MAX_WAITING_PER_PARTNER = 32;
/** Maximum for all partners in one mode, so that Sandbox takes no room from Live (D41). */
const MAX_WAITING_PER_MODE = 512;

/** Poll interval while any call waits: the maximum delay between a commit and its discovery. */
const LOOK_EVERY_MS = 50;
/** Interval after a failed poll: the database may be down for a while. */
const LOOK_AGAIN_MS = 1_000;

/**
 * Result of a wait: there is a new event, the time is over, the caller or the process is gone, or there is no room to
 * wait.
 */
export type WaitEnd = 'new' | 'time' | 'gone' | 'no room';

export interface FeedWait {
  readonly scope: TenantScope;
  readonly keyId: string;
  /** Waits for events of this order only. */
  readonly orderId?: string | undefined;
  /** The caller has seen every event up to this position. */
  readonly position: number;
  readonly forMs: number;
  /** Aborted when the caller hangs up. */
  readonly gone: AbortSignal;
}

interface Waiter extends AwaitedEvents {
  /** The caller has seen all of the partner's events up to this position. */
  position: number;
  readonly end: (how: WaitEnd) => void;
}

/** Waiting calls in one mode. */
interface ModeWatch {
  readonly waiters: Set<Waiter>;
  looking: boolean;
}

/**
 * Lets callers wait for new events without holding a connection (D39). One small statement per mode, twenty times a
 * second while any call waits, sees the commits of all processes. Shutdown ends every wait.
 */
@Injectable()
export class FeedWatch implements OnModuleDestroy {
  private readonly modes = perMode(newWatch);
  /** Waiting calls by key id and by partner and mode. */
  private readonly counts = new Map<string, number>();
  private waiting = 0;
  private stopped = false;

  constructor(
    private readonly feed: EventFeed,
    private readonly events: EventsRepository,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Number of waiting calls in this process. */
  get waitingCalls(): number {
    return this.waiting;
  }

  /** Runs first in a shutdown, so that waiting calls get their responses while the server can still send them. */
  onModuleDestroy(): void {
    this.stopped = true;
    for (const { waiters } of Object.values(this.modes)) for (const { end } of [...waiters]) end('gone');
  }

  /** Never rejects. */
  async wait({ scope, keyId, orderId, position, forMs, gone }: FeedWait): Promise<WaitEnd> {
    const watch = this.modes[scope.mode];
    if (this.stopped || gone.aborted) return 'gone';
    if (forMs <= 0) return 'time';
    const owner = `${scope.partnerId} ${scope.mode}`;
    if (
      this.countOf(keyId) >= MAX_WAITING_PER_KEY ||
      this.countOf(owner) >= MAX_WAITING_PER_PARTNER ||
      watch.waiters.size >= MAX_WAITING_PER_MODE
    )
      return 'no room';
    for (const name of [keyId, owner]) this.counts.set(name, this.countOf(name) + 1);
    this.waiting++;
    try {
      return await this.enter(scope.mode, watch, {
        partnerId: scope.partnerId,
        orderId,
        position,
        forMs,
        gone,
      });
    } finally {
      this.waiting--;
      for (const name of [keyId, owner]) this.leave(name);
    }
  }

  private countOf(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  private leave(name: string): void {
    const left = this.countOf(name) - 1;
    if (left > 0) this.counts.set(name, left);
    else this.counts.delete(name);
  }

  private enter(
    mode: Mode,
    watch: ModeWatch,
    {
      partnerId,
      orderId,
      position,
      forMs,
      gone,
    }: AwaitedEvents & Pick<FeedWait, 'position' | 'forMs' | 'gone'>,
  ): Promise<WaitEnd> {
    return new Promise((resolve) => {
      const end = (how: WaitEnd): void => {
        clearTimeout(timer);
        gone.removeEventListener('abort', hungUp);
        watch.waiters.delete(waiter);
        resolve(how);
      };
      const hungUp = (): void => end('gone');
      const waiter: Waiter = { partnerId, orderId, position, end };
      const timer = setTimeout(() => end('time'), forMs);
      gone.addEventListener('abort', hungUp);
      watch.waiters.add(waiter);
      if (watch.looking) return;
      watch.looking = true;
      setTimeout(() => void this.look(mode, watch), LOOK_EVERY_MS);
    });
  }

  private async look(mode: Mode, watch: ModeWatch): Promise<void> {
    let nextMs = LOOK_EVERY_MS;
    try {
      if (watch.waiters.size > 0) await this.wakeForNew(mode, watch);
    } catch (error) {
      nextMs = LOOK_AGAIN_MS;
      this.logger.warn({ event: 'events.watch_failed', err: error }, 'failed to poll the event feed');
    }
    watch.looking = watch.waiters.size > 0;
    if (watch.looking) setTimeout(() => void this.look(mode, watch), nextMs);
  }

  private async wakeForNew(mode: Mode, watch: ModeWatch): Promise<void> {
    const head = await this.feed.head(mode);
    const waiters = [...watch.waiters];
    const behind = waiters.filter(({ position }) => position < head);
    if (behind.length > 0) {
      const from = Math.min(...behind.map(({ position }) => position));
      for (const { end } of await this.events.withNewEvents(mode, behind, from, head)) end('new');
    }
    // The head may be lower than before if the last day with events was dropped.
    for (const waiter of waiters) waiter.position = head;
  }
}

function newWatch(): ModeWatch {
  return { waiters: new Set(), looking: false };
}
