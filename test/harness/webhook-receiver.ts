import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface ReceivedWebhook {
  readonly receivedAtMs: number;
  readonly headers: IncomingHttpHeaders;
  /** The raw body, which is signed. */
  readonly body: string;
}

export interface TestReceiver {
  readonly url: string;
  readonly received: ReceivedWebhook[];
  /** Responds to each request, by its number from 0. By default with 200. */
  answer: (nth: number, webhook: ReceivedWebhook, response: ServerResponse) => void;
  close(): Promise<void>;
}

/** An HTTP receiver on loopback that records its requests. */
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
      // Ignore a request that is cut off midway.
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
