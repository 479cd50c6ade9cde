import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { endsWithin } from '../../../common/time-limit.js';
import { Batcher } from '../../batcher.js';
import { mayBeOfOneRow } from '../../database/index.js';
import type { SignalChannel } from './signal-channel.js';
import { type LoadedPeer, SignalPeers } from './signal-peers.js';

/** A worker of this process. */
export interface GroupWorker {
  /** Claims from the group now; false when another process may: this one has no slot for it, or is stopping. */
  claimNow(group: string): boolean;
  /** Claims from the group when the time is over. */
  claimWithin(group: string, ms: number): void;
  /** How many groups it has; the other processes hear it. */
  load(): number;
}

/** Between two signals of a process: the first leaves at once, those of the next milliseconds together. */
const GATHER_MS = 4;
/** NOTIFY takes 8,000 bytes; a group has at most some forty. */
const MAX_GROUPS = 150;
/** After this a process claims what another is to claim first: that one may be dead, frozen or full. */
const SECOND_CLAIM_MS = 150;
/** How often worker processes say that they are there. */
const PRESENCE_EVERY_MS = 2_000;
const SETTLE_LIMIT_MS = 1_000;
const LAST_WORD_LIMIT_MS = 200;

/** Messages between processes: ids only, never rows (B3). */
interface Message {
  readonly from: string;
  /** The process that is meant; without it all are. */
  readonly to?: string;
  /** Groups with something due, by queue. */
  readonly due?: Readonly<Record<string, readonly string[]>>;
  /** The queues that the sender works on, with its load of each. */
  readonly works?: Readonly<Record<string, number>>;
}

interface DueGroup {
  readonly queue: string;
  readonly group: string;
  /** The process that has the group; undefined: whoever has room. */
  readonly owner: string | undefined;
}

/**
 * Says after a commit that a group has something due (D51): to the worker of this process directly, to the others by a
 * signal when this one cannot take it. Best effort by design: what is lost, the sweep finds.
 */
export class WorkSignals {
  /** This process, in messages. */
  readonly id = `${process.pid}-${randomUUID()}`;
  private readonly peers = new SignalPeers();
  private readonly workers = new Map<string, GroupWorker>();
  /** The groups that wait for the next signal. */
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

  /** Signals the worker about groups of the queue, from any process. @returns stops these signals */
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
   * Something of the group is due. Callers do not wait.
   * @param owner the process that has the group, where one is known: it alone is woken
   */
  tell(queue: string, group: string, owner?: string): void {
    if ((owner === undefined || owner === this.id) && this.workers.get(queue)?.claimNow(group)) return;
    const due = { queue, group, owner: owner === this.id ? undefined : owner };
    const name = nameOf(due);
    if (this.pending.has(name)) return;
    this.pending.add(name);
    void this.signals.add(due);
  }

  /** The other processes that work on the queue. */
  peersOf(queue: string): readonly LoadedPeer[] {
    return this.peers.list(queue, performance.now()).filter(({ id }) => id !== this.id);
  }

  /** Waits until all signals have left, or a second has passed; called by a graceful stop. */
  async settle(): Promise<void> {
    await endsWithin(this.signals.drain(), SETTLE_LIMIT_MS);
  }

  async close(): Promise<void> {
    this.signals.discard();
    if (this.presence) {
      clearInterval(this.presence);
      // So that the others wait for this one no longer; they find out by themselves, too.
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
    // A server that is away must not find a queue of them when it comes back.
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

/** Null for what is no message of this service: anybody who reaches the server can say something on its channels. */
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

/** Whether the server may have refused the signal for one of its groups: an error of a statement, or of a Redis command. */
function mayBeOfOneGroup(error: unknown): boolean {
  return mayBeOfOneRow(error) || (error instanceof Error && error.name === 'ReplyError');
}
