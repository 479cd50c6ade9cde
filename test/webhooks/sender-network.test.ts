import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { ResolveAddresses } from '../../src/infra/network/resolve-addresses.js';
import { type DeafAddress, deafAddress } from '../harness/deaf-address.js';
import { NameServer } from './sending/name-server.js';
import { nameServerResolver } from '../../src/infra/network/resolve-addresses.js';
import { connections, http, raw } from './sending/receivers.js';
import { afterThisTest, send, senderWith } from './sending/sender.js';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const LINK_DELAY_MS = 300;

const at =
  (...list: string[]): ResolveAddresses =>
  () =>
    Promise.resolve(list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));

async function deaf(host: string, port = 0): Promise<DeafAddress> {
  const address = await deafAddress(host, port, OK);
  afterThisTest(() => address.close());
  return address;
}

/** A link with 300 ms of delay in each direction. */
async function slowLink(toPort: number, host = '127.0.0.1'): Promise<number> {
  const server = createServer((near) => {
    const far = connect(toPort, '127.0.0.1');
    const later = (from: Socket, to: Socket): void => {
      from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), LINK_DELAY_MS));
      from.on('close', () => setTimeout(() => to.destroy(), LINK_DELAY_MS));
      from.on('error', () => undefined);
    };
    later(near, far);
    later(far, near);
  });
  server.listen(0, host);
  await once(server, 'listening');
  afterThisTest(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe('a receiver with a slow link and a dead address', () => {
  it.each([
    ['dead address first', ['127.0.0.2', '127.0.0.1']],
    ['dead address last', ['127.0.0.1', '127.0.0.2']],
    ['dead IPv6 address first', ['::1', '127.0.0.1']],
    ['dead addresses on both sides', ['127.0.0.2', '127.0.0.1', '::1']],
  ])('receives its webhook: %s', async (_what, addresses) => {
    const url = await http((_request, response) => void response.end());
    const port = await slowLink(Number(new URL(url).port));
    for (const host of addresses) if (host !== '127.0.0.1') await deaf(host, port);
    const result = await send(senderWith({ resolve: at(...addresses) }), `http://partner.test:${port}/hook`);
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200 });
    expect(result.latencyMs).toBeGreaterThanOrEqual(2 * LINK_DELAY_MS - 20);
  });

  it.each([
    ['and no other address', ['127.0.0.3']],
    ['and a dead one before it', ['127.0.0.2', '127.0.0.3']],
    ['and a dead one after it', ['127.0.0.3', '127.0.0.2']],
  ])('receives its webhook although the first SYN is lost, %s', async (_what, addresses) => {
    const slow = await deaf('127.0.0.3');
    if (addresses.includes('127.0.0.2')) await deaf('127.0.0.2', slow.port);
    const sending = send(senderWith({ resolve: at(...addresses) }), `http://partner.test:${slow.port}/hook`);
    setTimeout(() => slow.hear(), 600);
    const result = await sending;
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200, error: null });
    expect(result.phases!.connectMs).toBeGreaterThan(550);
  });

  it("fails only at the attempt's deadline when all of its addresses are dead", async () => {
    const { port } = await deaf('127.0.0.2');
    await deaf('127.0.0.3', port);
    const sender = senderWith({ resolve: at('127.0.0.2', '127.0.0.3'), timeoutMs: 2_500 });
    const result = await send(sender, `http://partner.test:${port}/hook`);
    expect(result).toMatchObject({ outcome: 'failed', error: 'timeout' });
    expect(result.latencyMs).toBeGreaterThanOrEqual(2_495);
    expect(result.phases!.connectMs).toBeGreaterThan(2_000);
  });

  it('does not wait for a name server that never responds for AAAA', async () => {
    const url = await http((_request, response) => void response.end());
    const nameServer = await NameServer.start({ 'partner.test': { a: ['127.0.0.1'], silent: ['AAAA'] } });
    const sender = senderWith({ resolve: nameServerResolver(() => [nameServer.address]) });
    const result = await send(sender, url.replace('127.0.0.1', 'partner.test'));
    expect(result).toMatchObject({ outcome: 'delivered' });
    expect(result.phases!.dnsMs).toBeLessThan(4_000);
  });
});

describe('a receiver that closes keep-alive connections', () => {
  /** Responds to the first request of each connection, and closes the connection on the second. */
  async function closingAtTheSecond() {
    let requests = 0;
    const port = await connections((socket) => {
      let ofConnection = 0;
      socket.on('data', () => {
        requests++;
        if (++ofConnection === 1) socket.write(OK);
        else socket.resetAndDestroy();
      });
    });
    return { url: `http://127.0.0.1:${port}/hook`, requests: () => requests };
  }

  it('receives the same request again at once, in the same attempt', async () => {
    const { url, requests } = await closingAtTheSecond();
    const sender = senderWith();
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
    await new Promise((done) => setTimeout(done, 50));
    const second = await send(sender, url);
    expect(second).toMatchObject({ outcome: 'delivered', statusCode: 200, reusedConnection: false });
    expect(second.phases!.connectMs).toBeGreaterThan(0);
    expect(requests()).toBe(3);
  });

  it('receives a hundred webhooks at once, and none fails', async () => {
    const port = await connections((socket) => {
      socket.on('data', () => socket.end(OK));
    });
    const sender = senderWith();
    for (let round = 0; round < 5; round++) {
      const url = `http://127.0.0.1:${port}/hook`;
      const results = await Promise.all(Array.from({ length: 100 }, () => send(sender, url)));
      expect(results.filter(({ outcome }) => outcome !== 'delivered')).toEqual([]);
    }
  });

  it('receives a request on a new connection only once', async () => {
    let requests = 0;
    const url = await raw((socket) => {
      requests++;
      socket.resetAndDestroy();
    });
    expect(await send(senderWith(), url)).toMatchObject({ outcome: 'failed', error: 'connect: ECONNRESET' });
    expect(requests).toBe(1);
  });

  it('receives a request only once if it sent a byte of a response', async () => {
    let requests = 0;
    const port = await connections((socket) => {
      let ofConnection = 0;
      socket.on('data', () => {
        requests++;
        if (++ofConnection === 1) return void socket.write(OK);
        socket.write('HTTP/1.1 2');
        setTimeout(() => socket.resetAndDestroy(), 50);
      });
    });
    const sender = senderWith();
    const url = `http://127.0.0.1:${port}/hook`;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered' });
    await new Promise((done) => setTimeout(done, 50));
    expect(await send(sender, url)).toMatchObject({ outcome: 'failed', error: 'connect: ECONNRESET' });
    expect(requests).toBe(2);
  });
});
