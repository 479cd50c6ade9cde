import type { ServerResponse } from 'node:http';
import { type ReceivedWebhook, startReceiver, type TestReceiver } from '../harness/index.js';

/** A receiver that keeps every request until it is told to answer, and counts how many it has at once. */
export class HoldingReceiver {
  /** Requests without an answer, oldest first. */
  readonly open: ServerResponse[] = [];
  /** The most that were open at once. */
  most = 0;
  private answering: { readonly status: number; readonly afterMs: number } | null = null;

  private constructor(private readonly receiver: TestReceiver) {
    receiver.answer = (_nth, _webhook, response) => {
      this.open.push(response);
      // Also when the sender gives up.
      response.on('close', () => this.remove(response));
      this.most = Math.max(this.most, this.open.length);
      this.onRequest();
      if (this.answering) this.answerLater(response);
    };
  }

  /** Called at each arrival. */
  onRequest = (): void => undefined;

  static async start(): Promise<HoldingReceiver> {
    return new HoldingReceiver(await startReceiver());
  }

  get url(): string {
    return this.receiver.url;
  }

  get received(): readonly ReceivedWebhook[] {
    return this.receiver.received;
  }

  /** From now on every request is answered after `afterMs` milliseconds, those that wait already included. */
  answerAll(status: number, afterMs: number): void {
    const waiting = this.answering ? [] : [...this.open];
    this.answering = { status, afterMs };
    waiting.forEach((response) => this.answerLater(response));
  }

  /** From now on requests wait again; what is being answered is. */
  holdAll(): void {
    this.answering = null;
  }

  private answerLater(response: ServerResponse): void {
    const { status, afterMs } = this.answering!;
    setTimeout(() => {
      // No longer open before the answer leaves: the sender cannot know it earlier.
      this.remove(response);
      response.writeHead(status).end();
    }, afterMs);
  }

  private remove(response: ServerResponse): void {
    const place = this.open.indexOf(response);
    if (place >= 0) this.open.splice(place, 1);
  }

  close(): Promise<void> {
    return this.receiver.close();
  }
}
