import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startZenditSimulator, type ZenditSimulator } from '../../simulators/zendit/simulator.js';

const PURCHASE = /\/esim\/purchases\/([^/?]+)-\d+$/;

/** A proxy to the Zendit simulator that counts queries per reference and can delay them. */
export class CountingWholesaler {
  /** Number of queries by our reference. */
  readonly asked = new Map<string, number>();
  /** Called with the number of queries so far. The response waits until it resolves. */
  beforeAnswer: (questions: number) => Promise<void> | void = () => undefined;
  private questions = 0;

  private constructor(
    private readonly simulator: ZenditSimulator,
    private readonly door: Server,
  ) {}

  static async open(): Promise<CountingWholesaler> {
    const door = createServer();
    const wholesaler = new CountingWholesaler(await startZenditSimulator(), door);
    door.on(
      'request',
      (request, response) =>
        // The simulator may close during a call of a killed worker.
        void wholesaler.pass(request, response).catch(() => response.destroy()),
    );
    door.listen(0, '127.0.0.1');
    await once(door, 'listening');
    return wholesaler;
  }

  get env(): Record<string, string> {
    const { port } = this.door.address() as AddressInfo;
    return {
      ZENDIT_BASE_URL: `http://127.0.0.1:${port}/v1`,
      ZENDIT_API_KEY: this.simulator.apiKey,
      PROVIDER_REQUESTS_PER_SECOND: '500',
      PROVIDER_READ_LAG_MS: '0',
    };
  }

  get questionsAsked(): number {
    return this.questions;
  }

  async close(): Promise<void> {
    this.door.closeAllConnections();
    this.door.close();
    await this.simulator.close();
  }

  private async pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reference = PURCHASE.exec(request.url!)?.[1];
    if (reference) {
      this.asked.set(reference, (this.asked.get(reference) ?? 0) + 1);
      await this.beforeAnswer(++this.questions);
    }
    const url = new URL(request.url!, this.simulator.baseUrl);
    const { authorization = '' } = request.headers;
    const answer = await fetch(url, { headers: { authorization } });
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(await answer.text());
  }
}
