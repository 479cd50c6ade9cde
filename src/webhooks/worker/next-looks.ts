import type { WakeUps } from '../../infra/queue/index.js';

/** Below this a timer of this process is exact and cheap; above, the queue remembers, whoever dies (D1). */
const NEAR_MS = 1_000;
/** Due times of one delivery come back with some jitter, as they are turned from the database's clock into ours. */
const SAME_MS = 100;
/** What is due already and still was not claimed is locked by somebody: no hot loop. */
const SHORTEST_MS = 25;
/** From here on, what is past is swept out before something is added. */
const MANY = 1_000;

/** Asks once for each later look at a lane: near ones by timer, far ones by a delayed wake-up. */
export class NextLooks {
  private readonly timers = new Map<string, { readonly at: number; readonly timer: NodeJS.Timeout }>();
  private readonly asked = new Map<string, number>();

  constructor(
    private readonly wakeUps: Pick<WakeUps, 'requestAt'>,
    private readonly wake: (lane: string) => void,
  ) {}

  at(lane: string, due: Date): void {
    const dueMs = Math.max(due.getTime(), Date.now() + SHORTEST_MS);
    if (dueMs - Date.now() < NEAR_MS) this.setTimer(lane, dueMs);
    else this.askQueue(lane, dueMs);
  }

  stop(): void {
    for (const { timer } of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  private setTimer(lane: string, dueMs: number): void {
    const current = this.timers.get(lane);
    if (current && current.at <= dueMs) return;
    clearTimeout(current?.timer);
    const timer = setTimeout(() => {
      this.timers.delete(lane);
      this.wake(lane);
    }, dueMs - Date.now());
    this.timers.set(lane, { at: dueMs, timer });
  }

  private askQueue(lane: string, dueMs: number): void {
    const asked = this.asked.get(lane);
    if (asked !== undefined && Math.abs(asked - dueMs) < SAME_MS) return;
    this.forgetPast();
    this.asked.set(lane, dueMs);
    this.wakeUps.requestAt(lane, new Date(dueMs));
  }

  private forgetPast(): void {
    if (this.asked.size < MANY) return;
    const now = Date.now();
    for (const [lane, at] of this.asked) if (at < now) this.asked.delete(lane);
  }
}
