import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { endsWithin } from '../../../common/time-limit.js';
import { Batcher } from '../../batcher.js';
import { mayBeOfOneRow } from '../../database/index.js';
import type { Reservation } from '../job-runner.js';
import type { SignalChannel } from './signal-channel.js';
import { type LoadedPeer, SignalPeers } from './signal-peers.js';

/** A worker of this process. */
export interface GroupWorker {
  /**
   * Claims from the group now. False if another process may claim, because this one has no slot for it or is stopping.
   */
  claimNow(group: string): boolean;
  /** Claims from the group within `ms` milliseconds. */
  claimWithin(group: string, ms: number): void;
  /** Reserves a slot for a job of the group that is being created; null if there is none. */
  reserve(group: string): Reservation<unknown> | null;
  /** Number of its groups, reported to the other processes. */
  load(): number;
}

/**
 * Minimum pause between two signals of a process. The first is sent at once; those due during the pause are combined.
 */
const GATHER_MS = 4;
/** NOTIFY accepts 8,000 bytes, and a group takes at most about forty. */
const MAX_GROUPS = 150;
/**
 * Delay before a process claims a group that another should claim first, because that one may be dead, frozen or full.
 */
const SECOND_CLAIM_MS = 150;
/** Interval at which worker processes announce themselves. */
const PRESENCE_EVERY_MS = 2_000;
const SETTLE_LIMIT_MS = 1_000;
const LAST_WORD_LIMIT_MS = 200;

/** Messages between processes: ids only, never rows (B3). */
interface Message {
  readonly from: string;
  /** The recipient; all processes if omitted. */
  readonly to?: string;
  /** Groups with due work, by queue. */
  readonly due?: Readonly<Record<string, readonly string[]>>;
  /** The queues that the sender works on, with its load on each. */
  readonly works?: Readonly<Record<string, number>>;
}

interface DueGroup {
  readonly queue: string;
  readonly group: string;
  /** The process that has the group; undefined: any process with room. */
  readonly owner: string | undefined;
}

/**
 * Notifies workers after a commit that a group has due work (D51): this process's worker directly, the others by a
 * signal if this one cannot take it. Best effort by design: the sweep finds work whose signal was lost.
 */
export class WorkSignals {
  /** Id of this process in messages. */
  readonly id = `${process.pid}-${randomUUID()}`;
  private readonly peers = new SignalPeers();
  private readonly workers = new Map<string, GroupWorker>();
  /** Groups that wait for the next signal. */
  private readonly pending = new Set<string>();
  private readonly signals = new Batcher<DueGroup>({
    maxItems: MAX_GROUPS,
    gather: GATHER_MS,
    handle: (groups) => this.sendDue(groups),
    isItemFault: mayBeOfOneGroup,
    failed: (_groups, error) => this.report(error),
  });
  private presence: NodeJS.Timeout | null = null;
  private presenceUnderWay = false;

  constructor(
    private readonly channel: SignalChannel,
    private readonly logger: Logger,
  ) {}

  /** Passes signals about the queue's groups, from any process, to the worker. @returns a function that stops this */
  attach(queue: string, worker: GroupWorker): () => void {
    if (!this.presence) {
      this.channel.listen((text) => this.receive(text));
      this.presence = setInterval(() => this.sayPresence(), PRESENCE_EVERY_MS).unref();
    }
    this.workers.set(queue, worker);
    this.sayPresence();
    return () => {
      this.workers.delete(queue);
      this.sayPresence();
    };
  }

  /**
   * Notifies that the group has due work. Callers do not wait.
   * @param owner the process that has the group, if known: only this one is notified
   */
  tell(queue: string, group: string, owner?: string): void {
    if ((owner === undefined || owner === this.id) && this.workers.get(queue)?.claimNow(group)) return;
    const due = { queue, group, owner: owner === this.id ? undefined : owner };
    const name = nameOf(due);
    if (this.pending.has(name)) return;
    this.pending.add(name);
    void this.signals.add(due);
  }

  /** Reserves a slot of this process's worker of the queue; null if there is no worker, or no slot. */
  reserve(queue: string, group: string): Reservation<unknown> | null {
    return this.workers.get(queue)?.reserve(group) ?? null;
  }

  /** The other processes that work on the queue. */
  peersOf(queue: string): readonly LoadedPeer[] {
    return this.peers.list(queue, performance.now()).filter(({ id }) => id !== this.id);
  }

  /** Waits until all signals are sent, at most one second. Called during a graceful shutdown. */
  async settle(): Promise<void> {
    await endsWithin(this.signals.drain(), SETTLE_LIMIT_MS);
  }

  async close(): Promise<void> {
    this.signals.discard();
    if (this.presence) {
      clearInterval(this.presence);
      // Without this message, the others would wait for this process until they miss its announcements.
      const said = this.send({ from: this.id, works: {} }).catch(() => undefined);
      await endsWithin(said, LAST_WORD_LIMIT_MS);
    }
    await this.channel.close();
  }

  private async sendDue(groups: readonly DueGroup[]): Promise<void> {
    for (const group of groups) this.pending.delete(nameOf(group));
    const byOwner = [...Map.groupBy(groups, ({ owner }) => owner)];
    await Promise.all(
      byOwner.map(([to, some]) =>
        this.send({ from: this.id, ...(to !== undefined && { to }), due: byQueue(some) }),
      ),
    );
  }

  private sayPresence(): void {
    const works = Object.fromEntries([...this.workers].map(([queue, worker]) => [queue, worker.load()]));
    // Announcements must not pile up while the server is down.
    if (this.presenceUnderWay) return;
    this.presenceUnderWay = true;
    this.send({ from: this.id, works })
      .catch(() => undefined)
      .finally(() => (this.presenceUnderWay = false));
  }

  private send(message: Message): Promise<void> {
    return this.channel.send(JSON.stringify(message));
  }

  private receive(text: string): void {
    const message = parse(text);
    if (!message || message.from === this.id) return;
    if (message.to !== undefined && message.to !== this.id) return;
    const nowMs = performance.now();
    if (message.works) this.peers.saw(message.from, message.works, nowMs);
    for (const [queue, groups] of Object.entries(message.due ?? {})) {
      const worker = this.workers.get(queue);
      if (!worker) continue;
      for (const group of groups) {
        const isFirst =
          message.to === this.id || this.peers.isFirst(this.id, queue, group, message.from, nowMs);
        if (isFirst) worker.claimNow(group);
        else worker.claimWithin(group, SECOND_CLAIM_MS);
      }
    }
  }

  private report(error: unknown): void {
    this.logger.warn(
      { event: 'queue.notification_lost', err: error },
      'notification lost; the sweep will find the work',
    );
  }
}

function nameOf({ queue, group, owner = '' }: DueGroup): string {
  return `${queue} ${group} ${owner}`;
}

function byQueue(groups: readonly DueGroup[]): Record<string, string[]> {
  const due: Record<string, string[]> = {};
  for (const { queue, group } of groups) (due[queue] ??= []).push(group);
  return due;
}

/** Null for text that is not a message of this service: anyone with access to the server can send on its channels. */
function parse(text: string): Message | null {
  try {
    const { from, to, due, works } = JSON.parse(text) as Partial<Record<keyof Message, unknown>>;
    if (typeof from !== 'string' || (to !== undefined && typeof to !== 'string')) return null;
    if (works !== undefined && !isRecordOf(works, isNumber)) return null;
    if (due !== undefined && !isRecordOf(due, isTexts)) return null;
    return { from, ...(to && { to }), ...(works && { works }), ...(due && { due }) };
  } catch {
    return null;
  }
}

const isNumber = (value: unknown): value is number => typeof value === 'number';

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

function isRecordOf<T>(value: unknown, is: (each: unknown) => each is T): value is Record<string, T> {
  return typeof value === 'object' && value !== null && Object.values(value).every(is);
}

/**
 * Whether the server may have refused the signal because of one of its groups: a statement or a Redis command failed.
 */
function mayBeOfOneGroup(error: unknown): boolean {
  return mayBeOfOneRow(error) || (error instanceof Error && error.name === 'ReplyError');
}
