import { randomUUID } from 'node:crypto';
import { callbackTime } from './wire.ts';

export interface CallbackHabits {
  url: string | null;
  delayMs: number;
  /** Number of copies sent of each callback. */
  copies: number;
  /** Sends callbacks gathered within the delay in reverse order. */
  disorder: boolean;
}

type NotifyType =
  'ORDER_STATUS' | 'ESIM_STATUS' | 'SMDP_EVENT' | 'DATA_USAGE' | 'VALIDITY_USAGE' | 'CHECK_HEALTH';

/** Sends unsigned callbacks. A failed one is not repeated, because callbacks are hints only. */
export class Callbacks {
  readonly habits: CallbackHabits = { url: null, delayMs: 0, copies: 1, disorder: false };
  sent = 0;
  failed = 0;
  private waiting: string[] = [];
  private timer: NodeJS.Timeout | null = null;

  notify(notifyType: NotifyType, content: Record<string, unknown>): void {
    if (this.habits.url === null) return;
    const notice = { ...newEnvelope(notifyType), content };
    for (let i = 0; i < this.habits.copies; i++) this.waiting.push(JSON.stringify(notice));
    this.timer ??= setTimeout(() => this.flush(), this.habits.delayMs);
  }

  /** Sends one CHECK_HEALTH and returns whether the receiver accepted it. */
  async checkHealth(url: string): Promise<boolean> {
    const content = { orderNo: '1234567890', orderStatus: 'Test' };
    return this.post(url, JSON.stringify({ ...newEnvelope('CHECK_HEALTH'), content }));
  }

  stop(): void {
    if (this.timer) clearTimeout(this.timer);
    this.waiting = [];
  }

  private flush(): void {
    this.timer = null;
    const bodies = this.habits.disorder ? this.waiting.reverse() : this.waiting;
    this.waiting = [];
    const { url } = this.habits;
    if (url !== null) for (const body of bodies) void this.post(url, body);
  }

  private async post(url: string, body: string): Promise<boolean> {
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        signal: AbortSignal.timeout(10_000),
      });
      await answer.arrayBuffer();
      this.sent++;
      return answer.status === 200;
    } catch {
      this.failed++;
      return false;
    }
  }
}

function newEnvelope(notifyType: NotifyType): object {
  const notifyId = randomUUID().replaceAll('-', '');
  return { notifyType, notifyId, eventGenerateTime: callbackTime(Date.now()) };
}
