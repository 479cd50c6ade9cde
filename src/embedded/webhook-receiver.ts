import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { verifyWebhookSignature } from '../webhooks/index.js';

export interface WebhookReceiver {
  readonly url: string;
  /** Known only after the endpoint is registered. */
  setSecret(secret: string): void;
  close(): Promise<void>;
}

/** A receiver as a partner would write one: checks the signature over the raw body, answers, prints. */
export async function startWebhookReceiver(
  known: { port?: number; secret: string } | null,
  print: (line: string) => void,
): Promise<WebhookReceiver> {
  let secret = known?.secret ?? '';
  const server = createServer((request, response) => {
    receive(request, () => secret).then(
      ({ status, line }) => {
        print(line);
        response.writeHead(status).end();
      },
      () => response.writeHead(400).end(),
    );
  });
  await listen(server, known?.port ?? 0);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`,
    setSecret: (value) => (secret = value),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.resolve();
    },
  };
}

/** On the port of the last start, where deliveries that are still owed go, or on a free one when it is taken. */
async function listen(server: Server, port: number): Promise<void> {
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    if (port === 0) throw error;
    await listen(server, 0);
  }
}

async function receive(
  request: IncomingMessage,
  secret: () => string,
): Promise<{ status: number; line: string }> {
  const body = await text(request);
  const header = request.headers['x-service-signature'];
  const valid = typeof header === 'string' && verifyWebhookSignature({ header, body, secret: secret() });
  if (!valid) return { status: 400, line: 'webhook  REFUSED: the signature does not verify' };
  const event = JSON.parse(body) as { id: string; type: string; data: unknown };
  return {
    status: 200,
    line: `webhook  ${event.type}  signature ok  ${event.id}  ${JSON.stringify(event.data)}`,
  };
}
