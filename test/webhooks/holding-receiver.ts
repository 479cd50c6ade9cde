import type { ServerResponse } from 'node:http';
import { type ReceivedWebhook, startReceiver, type TestReceiver } from '../harness/index.js';

/** A receiver that holds every request until it may respond, and counts concurrent requests. */
export class HoldingReceiver {
  /** Requests without a response, oldest first. */
  readonly open: ServerResponse[] = [];
  /** The maximum number of concurrent open requests. */
  most = 0;
  private answering: { readonly status: number; readonly afterMs: number } | null = null;

  private constructor(private readonly receiver: TestReceiver) {
    receiver.answer = (_nth, _webhook, response) => {
      this.open.push(response);
      // Also emitted when the sender disconnects.
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

  /** Responds to every request after `afterMs` milliseconds from now on, including those that already wait. */
  answerAll(status: number, afterMs: number): void {
    const waiting = this.answering ? [] : [...this.open];
    this.answering = { status, afterMs };
    waiting.forEach((response) => this.answerLater(response));
  }

  /** Holds requests again from now on. Responses in progress are still sent. */
  holdAll(): void {
    this.answering = null;
  }

  private answerLater(response: ServerResponse): void {
    const { status, afterMs } = this.answering!;
    setTimeout(() => {
      // Count it as closed before the response is sent, because the sender cannot know earlier.
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
