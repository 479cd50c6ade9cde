import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface WireAnswer {
  readonly status: number;
  readonly json: unknown;
}

export interface AnsweringServer {
  readonly url: string;
  /** `METHOD /path` of all calls, oldest first. */
  readonly calls: readonly string[];
  close(): Promise<void>;
}

/** Responds to every call with the test's JSON or not at all, like a gateway or an odd provider. */
export async function startAnsweringServer(
  answer: (method: string, path: string, body: string) => WireAnswer | null,
): Promise<AnsweringServer> {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      const { method = '', url = '' } = request;
      calls.push(`${method} ${url}`);
      const given = answer(method, url, body);
      if (given === null) return;
      const { status, json } = given;
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
