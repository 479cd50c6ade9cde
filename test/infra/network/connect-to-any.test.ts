import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectToAny, MAX_ADDRESSES } from '../../../src/infra/network/connect-to-any.js';
import { type DeafAddress, deafAddress } from '../../harness/deaf-address.js';

const LIVE = '127.0.0.1';

/** Longer than any connection in this file needs on a busy machine. */
const patient = (): AbortSignal => AbortSignal.timeout(60_000);

async function live(host = LIVE, port = 0) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  server.listen(port, host);
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

async function deaf(host: string, port: number): Promise<DeafAddress> {
  const address = await deafAddress(host, port);
  onTestFinished(() => address.close());
  return address;
}

const addresses = (...list: string[]) =>
  list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

async function connected(list: string[], port: number, signal = patient()): Promise<string | undefined> {
  const socket = await connectToAny(addresses(...list), port, signal);
  onTestFinished(() => void socket.destroy());
  return socket.remoteAddress;
}

describe('connecting to a host with several addresses', () => {
  it('waits 250 ms for a dead address before it uses the next one', async () => {
    const { port, sockets } = await live();
    await deaf('127.0.0.2', port);
    const startedAt = performance.now();
    expect(await connected(['127.0.0.2', LIVE], port)).toBe(LIVE);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(240);
    expect(sockets.size).toBe(1);
  });

  it('uses the IPv4 address when the IPv6 address is dead', async () => {
    const { port } = await live();
    await deaf('::1', port);
    expect(await connected(['::1', LIVE], port)).toBe(LIVE);
  });

  it('waits for a slow address while another is dead, in either order', async () => {
    for (const order of [
      ['127.0.0.3', '127.0.0.2'],
      ['127.0.0.2', '127.0.0.3'],
    ]) {
      const slow = await deafAddress('127.0.0.3');
      const dead = await deafAddress('127.0.0.2', slow.port);
      const connecting = connected(order, slow.port);
      // Both SYNs are lost. The one that is resent after a second finds a listener.
      setTimeout(() => slow.hear(), 600);
      expect(await connecting).toBe('127.0.0.3');
      await Promise.all([slow.close(), dead.close()]);
    }
  });

  it('skips addresses that refuse at once, and throws the first error when all refuse', async () => {
    const { port } = await live();
    const refusing = Array.from({ length: MAX_ADDRESSES - 1 }, (_, i) => `127.0.1.${i + 1}`);
    expect(await connected([...refusing, LIVE], port)).toBe(LIVE);
    await expect(connected(['127.0.1.1', '::1', '127.0.1.2'], 1)).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
  });

  it('reaches the fifth when four are dead, with at most four concurrent attempts', async () => {
    const { port } = await live('127.0.0.9');
    const dead = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
    for (const host of dead) await deaf(host, port);
    const startedAt = performance.now();
    expect(await connected([...dead, '127.0.0.9'], port)).toBe('127.0.0.9');
    // The first attempt stays active for three seconds, so that a lost SYN can be resent.
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(2_900);
  });

  it('tries at most twenty', async () => {
    const { port } = await live();
    const refusing = Array.from({ length: MAX_ADDRESSES }, (_, i) => `127.0.1.${i + 1}`);
    await expect(connected([...refusing, LIVE], port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('connecting to a single address', () => {
  it('survives a lost SYN', async () => {
    const slow = await deaf('127.0.0.2', 0);
    const connecting = connected(['127.0.0.2'], slow.port);
    setTimeout(() => slow.hear(), 600);
    expect(await connecting).toBe('127.0.0.2');
  });

  it("ends with the reason of a caller's abort", async () => {
    const { port } = await deaf('127.0.0.2', 0);
    const reason = new Error('too late');
    const control = new AbortController();
    setTimeout(() => control.abort(reason), 100);
    await expect(connected(['127.0.0.2'], port, control.signal)).rejects.toBe(reason);
    await expect(connected(['127.0.0.2'], port, control.signal)).rejects.toBe(reason);
  });
});
