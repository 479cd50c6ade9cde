import type { Logger } from 'pino';

/** Work that is owed to lanes: deliveries to endpoints, orders of partners. The tables say what is due. */
export interface LaneWork<Item> {
  /** Claims up to `slots` due items of the lane, oldest first, each with a lease. Must not claim one twice. */
  claim(lane: string, slots: number): Promise<readonly Item[]>;
  /** When the lane has something due next, as far as the tables know now; null for nothing. */
  nextDueAt(lane: string): Promise<Date | null>;
  /**
   * Does one item and records its outcome. What it throws is logged; the lease then lapses.
   * `enough`: the end of the item frees nothing that the lane waits for, so nobody needs to look.
   */
  perform(item: Item): Promise<LookAfterwards | void>;
  /** The lane has nothing under way: whatever is remembered of it may go. */
  forget?(lane: string): void;
}

export type LookAfterwards = 'look' | 'enough';

export interface LaneRunnerOptions {
  /** Items of one lane under way at once in this process: a hanging lane fills its own slots only (D34). */
  readonly slotsPerLane: number;
  readonly totalSlots: number;
  readonly logger: Logger;
  /** Asks for a look at the lane at a later time. */
  wakeAt(lane: string, at: Date): void;
}

interface Lane {
  running: number;
  claiming: boolean;
  again: boolean;
}

/**
 * Drains lanes: claim, perform concurrently, claim more as slots free up, ask for a wake-up at the next due time.
 * `wake` returns at once, so that a queue's worker is never held by a slow lane.
 */
export class LaneRunner<Item> {
  private readonly lanes = new Map<string, Lane>();
  private readonly waiting = new Set<string>();
  private readonly tasks = new Set<Promise<void>>();
  private running = 0;
  private stopped = false;

  constructor(
    private readonly work: LaneWork<Item>,
    private readonly options: LaneRunnerOptions,
  ) {}

  /** Items under way in this process. */
  get inFlight(): number {
    return this.running;
  }

  wake(lane: string): void {
    if (this.stopped) return;
    const state = this.lanes.get(lane) ?? { running: 0, claiming: false, again: false };
    this.lanes.set(lane, state);
    if (state.claiming) {
      state.again = true;
      return;
    }
    this.track(this.fill(lane, state));
  }

  /** Claims nothing more and waits until what is under way has ended. */
  async stop(): Promise<void> {
    this.stopped = true;
    while (this.tasks.size > 0) await Promise.allSettled(this.tasks);
  }

  private async fill(lane: string, state: Lane): Promise<void> {
    state.claiming = true;
    let laneIsEmpty = false;
    try {
      do {
        state.again = false;
        const slots = Math.min(
          this.options.slotsPerLane - state.running,
          this.options.totalSlots - this.running,
        );
        if (slots <= 0) {
          if (state.running < this.options.slotsPerLane) this.waiting.add(lane);
          break;
        }
        this.running += slots; // reserved while the claim is under way: other lanes claim at the same time
        const items = await this.claim(lane, slots);
        this.giveBack(slots - items.length);
        for (const item of items) this.start(lane, state, item);
        laneIsEmpty = items.length < slots;
        if (!laneIsEmpty) state.again = true;
      } while (state.again && !this.stopped);
      if (laneIsEmpty && !this.stopped) await this.askForNext(lane);
    } finally {
      state.claiming = false;
      if (state.again && !this.stopped) this.wake(lane);
      else this.forgetIfIdle(lane, state);
    }
  }

  private async claim(lane: string, slots: number): Promise<readonly Item[]> {
    try {
      return await this.work.claim(lane, slots);
    } catch (error) {
      this.options.logger.warn(
        { event: 'lane.claim_failed', lane, err: error },
        'claim failed; the sweep tries again',
      );
      return [];
    }
  }

  private async askForNext(lane: string): Promise<void> {
    try {
      const at = await this.work.nextDueAt(lane);
      if (at) this.options.wakeAt(lane, at);
    } catch (error) {
      this.options.logger.warn({ event: 'lane.next_due_failed', lane, err: error }, 'next due time unknown');
    }
  }

  private start(lane: string, state: Lane, item: Item): void {
    state.running++;
    this.track(
      this.perform(lane, item).then((look) => {
        state.running--;
        this.running--;
        // A look that is under way may have begun before this end.
        if (look === 'look' || state.claiming) this.wake(lane);
        else this.forgetIfIdle(lane, state);
        this.wakeOneWaiting();
      }),
    );
  }

  /** Never rejects. */
  private async perform(lane: string, item: Item): Promise<LookAfterwards> {
    try {
      return (await this.work.perform(item)) ?? 'look';
    } catch (error) {
      this.options.logger.error(
        { event: 'lane.perform_failed', lane, err: error },
        'work failed; its lease will lapse',
      );
      return 'look';
    }
  }

  /** Slots that a claim did not need go to lanes that found none: they wait for nothing else. */
  private giveBack(slots: number): void {
    this.running -= slots;
    const lanes = [...this.waiting].slice(0, slots);
    for (const lane of lanes) this.waiting.delete(lane);
    for (const lane of lanes) this.wake(lane);
  }

  private wakeOneWaiting(): void {
    const [lane] = this.waiting;
    if (lane === undefined) return;
    this.waiting.delete(lane);
    this.wake(lane);
  }

  private forgetIfIdle(lane: string, state: Lane): void {
    if (state.running > 0 || state.claiming || this.waiting.has(lane)) return;
    this.lanes.delete(lane);
    this.work.forget?.(lane);
  }

  private track(task: Promise<void>): void {
    this.tasks.add(task);
    void task.finally(() => this.tasks.delete(task));
  }
}
