import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { EsimClient, EsimConnectionError } from '../../sdk/src/index.js';
import { freePort } from '../../chaos/free-port.js';

const apiKey = `svc_sk_test_${'a'.repeat(32)}`;
const servers: { close(): unknown }[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.close()));

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<string> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answering = (listener: RequestListener): Promise<string> => listening(createServer(listener));

async function messageOf(
  baseUrl: string,
  call: (esim: EsimClient) => Promise<unknown>,
  timeoutMs = 60_000,
): Promise<string> {
  const esim = new EsimClient({ apiKey, baseUrl, maxTries: 1, timeoutMs });
  const error = await call(esim).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EsimConnectionError);
  return (error as Error).message;
}

const read = (esim: EsimClient): Promise<unknown> => esim.orders.get('ord_1');
const buy = (esim: EsimClient): Promise<unknown> => esim.orders.place({ package_id: 'pkg_fr_1gb_7d' });
const BUY_AGAIN =
  /The call may have taken effect\. Repeat it with the same idempotencyKey, which is in error\.call\.$/;

describe('the message of an SDK error', () => {
  it('names host and cause when nothing listens there, and says that nothing was sent', async () => {
    const baseUrl = `http://localhost:${await freePort()}`;
    const message = await messageOf(baseUrl, buy);
    expect(message).toContain(`POST ${baseUrl}/v1/orders: the connection failed: connect ECONNREFUSED `);
    expect(message).toMatch(
      /\. Nothing was sent\. Check that baseUrl is correct and that the service is running there\.$/,
    );
  });

  it('names a host that does not exist', async () => {
    const message = await messageOf('https://no-such-host.invalid', read);
    expect(message).toMatch(
      /^GET https:\/\/no-such-host\.invalid\/v1\/orders\/ord_1: the connection failed: /,
    );
    expect(message).toMatch(/(ENOTFOUND|EAI_AGAIN) no-such-host\.invalid\. Nothing was sent\. /);
  });

  it('explains how a connection broke, and what that means for a purchase', async () => {
    const baseUrl = await listening(createTcpServer((socket) => socket.once('data', () => socket.destroy())));
    const message = await messageOf(baseUrl, buy);
    expect(message).toMatch(/: the connection failed: \S.* \(?(UND_ERR_SOCKET|ECONNRESET)/);
    expect(message).toMatch(BUY_AGAIN);
    expect(await messageOf(baseUrl, read)).toMatch(/\. Try again later\.$/);
  });

  it('names host and time when no response arrived in time', async () => {
    const baseUrl = await answering(() => undefined);
    const message = await messageOf(baseUrl, buy, 500);
    expect(message).toContain(`POST ${baseUrl}/v1/orders: no response within 500 ms. `);
    expect(message).toMatch(BUY_AGAIN);
  });

  it('distinguishes the response of another program from that of the service', async () => {
    const baseUrl = await answering((_request, response) =>
      response.writeHead(502).end('<h1>Bad Gateway</h1>'),
    );
    expect(await messageOf(baseUrl, read)).toBe(
      `GET ${baseUrl}/v1/orders/ord_1: the response with status 502 did not come from the service. Try again later.`,
    );
  });

  it.each([
    ['undefined', undefined, 'baseUrl is missing.'],
    ['empty', ' ', 'baseUrl is missing.'],
    ['not a URL', 'not a url', 'baseUrl does not start with http:// or https://.'],
    ['without a scheme', 'api.example.com', 'baseUrl does not start with http:// or https://.'],
    ['a host and a port', 'localhost:3000', 'baseUrl does not start with http:// or https://.'],
    [
      'a URL with another scheme',
      'ftp://api.example.com',
      'baseUrl does not start with http:// or https://.',
    ],
  ])('explains what to pass when the baseUrl is %s', (_name, baseUrl, begins) => {
    const make = (): EsimClient => new EsimClient({ apiKey, baseUrl: baseUrl as string });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(begins);
    expect(make).toThrow('Pass the address of the API, for example https://api.example.com');
  });

  it.each([
    ['undefined', undefined],
    ['empty', ''],
    ['white space', '\n'],
  ])('explains what to pass when the apiKey is %s', (_name, key) => {
    const make = (): EsimClient => new EsimClient({ apiKey: key as string, baseUrl: 'http://localhost' });
    expect(make).toThrow(
      'apiKey is missing. Pass a key from the portal, and check that ESIM_API_KEY is set.',
    );
  });
});
