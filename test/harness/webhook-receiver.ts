import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface ReceivedWebhook {
  readonly receivedAtMs: number;
  readonly headers: IncomingHttpHeaders;
  /** The raw body, as it is signed. */
  readonly body: string;
}

export interface TestReceiver {
  readonly url: string;
  readonly received: ReceivedWebhook[];
  /** How each request is answered, by its number from 0; 200 at first. */
  answer: (nth: number, webhook: ReceivedWebhook, response: ServerResponse) => void;
  close(): Promise<void>;
}

/** A real HTTP receiver on loopback that keeps what it gets. */
export async function startReceiver(): Promise<TestReceiver> {
  const received: ReceivedWebhook[] = [];
  const receiver = {
    answer: (_nth: number, _webhook: ReceivedWebhook, response: ServerResponse) =>
      void response.writeHead(200).end(),
  };
  const server = createServer((request, response) => {
    text(request).then(
      (body) => {
        const webhook = { receivedAtMs: performance.now(), headers: request.headers, body };
        received.push(webhook);
        api.answer(received.length - 1, webhook, response);
      },
      // A request that breaks off half read is none.
      () => undefined,
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const api: TestReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answer: receiver.answer,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.resolve();
    },
  };
  return api;
}
