import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { startReceiver, type ReceivedWebhook, type TestReceiver } from '../harness/index.js';

/** How a receiver behaves during the storm. */
export type Behaviour = 'good' | 'slow' | 'failing' | 'hanging' | 'resetting' | 'flapping';

const SLOW_MS = 300;
const FLAP_EVERY_MS = 1_500;

const BEHAVIOURS: Record<Behaviour, (response: ServerResponse) => void> = {
  good: (response) => void response.writeHead(200).end(),
  slow: (response) => void setTimeout(() => response.writeHead(200).end(), SLOW_MS),
  failing: (response) => void response.writeHead(500).end(),
  hanging: () => undefined,
  resetting: (response) => response.socket?.resetAndDestroy(),
  flapping: (response) => {
    const up = Math.floor(performance.now() / FLAP_EVERY_MS) % 2 === 0;
    response.writeHead(up ? 200 : 500).end();
  },
};

/** A receiver that counts what it gets, by event and by delivery, and checks every signature by itself. */
export class StormReceiver {
  readonly byEvent = new Map<string, number>();
  readonly byDelivery = new Map<string, number>();
  badSignatures = 0;
  total = 0;
  /** The most attempts that were open at once. */
  mostOpen = 0;
  private open = 0;
  /** The endpoint's signing secret, known after its registration. */
  secret = '';
  private calm = false;

  private constructor(
    private readonly receiver: TestReceiver,
    readonly behaviour: Behaviour,
  ) {
    receiver.answer = (_nth, webhook, response) => {
      this.note(webhook);
      this.mostOpen = Math.max(this.mostOpen, ++this.open);
      response.once('close', () => this.open--);
      receiver.received.length = 0;
      BEHAVIOURS[this.calm ? 'good' : behaviour](response);
    };
  }

  static async start(behaviour: Behaviour): Promise<StormReceiver> {
    return new StormReceiver(await startReceiver(), behaviour);
  }

  get url(): string {
    return this.receiver.url;
  }

  /** Webhooks beyond the first of their event. */
  get duplicates(): number {
    return this.total - this.byEvent.size;
  }

  /** From now on it is a good one. */
  calmDown(): void {
    this.calm = true;
  }

  close(): Promise<void> {
    return this.receiver.close();
  }

  private note(webhook: ReceivedWebhook): void {
    this.total++;
    const { id } = JSON.parse(webhook.body) as { id: string };
    increment(this.byEvent, id);
    increment(this.byDelivery, String(webhook.headers['x-service-delivery']));
    if (!this.isSigned(webhook)) this.badSignatures++;
  }

  private isSigned({ headers, body }: ReceivedWebhook): boolean {
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-service-signature'])) ?? [];
    return createHmac('sha256', this.secret).update(`${t}.${body}`).digest('hex') === v1;
  }
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
