import { setTimeout as sleep } from 'node:timers/promises';
import type { Faults } from './faults.ts';
import { type Purchase, purchaseBody } from './purchase.ts';

const TIMEOUT_MS = 10_000;
/** The first steps of the documented schedule 1 s, 10 s, 1 min and so on. */
const RETRY_DELAYS_MS = [1_000, 10_000];

/** Posts finished purchases to the configured address: unsigned, with a static header, in no guaranteed order. */
export class WebhookSender {
  sent = 0;
  private readonly faults: Faults;
  private readonly stopping = new AbortController();

  constructor(faults: Faults) {
    this.faults = faults;
  }

  /** Sends the configured webhooks in the background. */
  announce(purchase: Purchase): void {
    const { webhookUrl, webhookCopies, webhookDisordered } = this.faults;
    if (webhookUrl === null) return;
    const final = purchaseBody(purchase, this.faults);
    const bodies = Array.from({ length: webhookCopies }, () => final);
    const { confirmation: _confirmation, ...earlier } = final;
    if (webhookDisordered) bodies.push({ ...earlier, status: 'IN_PROGRESS' });
    void this.deliver(webhookUrl, bodies).catch(() => undefined);
  }

  stop(): void {
    this.stopping.abort();
  }

  private async deliver(url: string, bodies: readonly unknown[]): Promise<void> {
    await sleep(this.faults.webhookDelayMs, undefined, { signal: this.stopping.signal });
    for (const body of bodies) {
      for (const delayMs of [0, ...RETRY_DELAYS_MS]) {
        await sleep(delayMs, undefined, { signal: this.stopping.signal });
        if (await this.post(url, body)) break;
      }
    }
  }

  private async post(url: string, body: unknown): Promise<boolean> {
    const { webhookHeader } = this.faults;
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    try {
      // An endpoint is used only while a HEAD request returns 2xx.
      const probe = await fetch(url, { method: 'HEAD', signal });
      if (!probe.ok) return false;
      const answer = await fetch(url, {
        method: 'POST',
        signal,
        headers: {
          'content-type': 'application/json',
          ...(webhookHeader ? { [webhookHeader.name]: webhookHeader.value } : {}),
        },
        body: JSON.stringify(body),
      });
      await answer.arrayBuffer();
      if (answer.ok) this.sent += 1;
      return answer.ok;
    } catch {
      return false;
    }
  }
}
