import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { JobInterrupted } from '../../src/infra/jobs/index.js';
import { nameServerResolver, type ResolveAddresses } from '../../src/infra/network/resolve-addresses.js';
import { TargetPolicy } from '../../src/webhooks/target-policy.js';
import {
  type AttemptResult,
  describeFailure,
  type FailureClass,
} from '../../src/webhooks/worker/attempt-result.js';
import { watchDials } from './sending/canary.js';
import { NameServer } from './sending/name-server.js';
import { connections, drip, http, raw } from './sending/receivers.js';
import { send, senderWith } from './sending/sender.js';

describe('the outcome', () => {
  it.each([200, 201, 202, 204, 299])('is success for %i', async (status) => {
    const url = await http((_request, response) => void response.writeHead(status).end());
    expect(await send(senderWith(), url)).toMatchObject({
      outcome: 'delivered',
      statusCode: status,
      error: null,
    });
  });

  it.each([300, 301, 302, 304, 307, 308, 400, 401, 404, 410, 429, 500, 503])(
    'is failure for %i',
    async (status) => {
      const url = await http(
        (_request, response) => void response.writeHead(status, { 'retry-after': '1' }).end(),
      );
      expect(await send(senderWith(), url)).toMatchObject({
        outcome: 'failed',
        statusCode: status,
        error: 'http_status',
      });
    },
  );

  it('waits for the final status after 1xx', async () => {
    const informed = await http((_request, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      setTimeout(() => response.writeHead(200).end(), 50);
    });
    expect(await send(senderWith(), informed)).toMatchObject({ outcome: 'delivered', statusCode: 200 });
    const continued = await raw((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n');
      socket.write('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n');
    });
    expect(await send(senderWith(), continued)).toMatchObject({ outcome: 'failed', statusCode: 503 });
  });
});

describe('the deadline', () => {
  it("is an attempt's only time limit: a receiver may stay silent longer than an idle connection", async () => {
    const url = await http(
      (_request, response) => void setTimeout(() => response.writeHead(200).end(), 5_000),
    );
    expect(await send(senderWith(), url)).toMatchObject({ outcome: 'delivered' });
  });
});

describe('the response body', () => {
  it('is kept up to 2 KB of a success and up to 16 KB of a failure, without a split character', async () => {
    const lengthOf = async (status: number, text: string) => {
      const url = await http((_request, response) => void response.writeHead(status).end(text));
      return (await send(senderWith(), url)).responseBody!.length;
    };
    const long = 'x'.repeat(100_000);
    expect(await lengthOf(200, long)).toBe(2_048);
    expect(await lengthOf(299, long)).toBe(2_048);
    expect(await lengthOf(300, long)).toBe(16_384);
    expect(await lengthOf(500, long)).toBe(16_384);
    expect(await lengthOf(200, `${'x'.repeat(2_047)}\u00e9`)).toBe(2_047);
    expect(await lengthOf(500, 'short')).toBe(5);
  });

  it('is kept as text that PostgreSQL accepts: NUL and invalid UTF-8 are replaced, gzip is not unpacked', async () => {
    const bytes = Buffer.concat([Buffer.from('a\0b'), Buffer.from([0xff]), gzipSync('x'.repeat(1_000_000))]);
    const url = await http((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes);
    });
    const { responseBody } = await send(senderWith(), url);
    expect(responseBody).toMatch(/^ab\ufffd/);
    expect(responseBody).not.toContain('\0');
    expect(responseBody!.length).toBeLessThan(2_000);
  });

  it('leaves the connection usable when it was read completely', async () => {
    const ports = new Set<number>();
    const url = await http((request, response) => {
      ports.add(request.socket.remotePort ?? 0);
      response.writeHead(200).end('ok');
    });
    const sender = senderWith();
    for (let i = 0; i < 5; i++) {
      expect((await send(sender, url)).outcome).toBe('delivered');
      await new Promise((done) => setTimeout(done, 10));
    }
    expect(ports.size).toBe(1);
  });

  it('is null when there is none', async () => {
    const empty = await http((_request, response) => void response.writeHead(204).end());
    expect((await send(senderWith(), empty)).responseBody).toBeNull();
  });
});

const at =
  (...list: string[]): ResolveAddresses =>
  () =>
    Promise.resolve(list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));

/** One failure per class. The compiler requires every class. */
const WAYS: Record<FailureClass, () => Promise<AttemptResult>> = {
  dns: () => {
    const resolve = () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' }));
    return send(senderWith({ resolve }), 'http://partner.test/');
  },
  connect: () => send(senderWith(), 'http://127.0.0.1:1/'),
  tls: async () => {
    const url = await http((_request, response) => void response.end());
    return send(senderWith(), url.replace('http:', 'https:'));
  },
  timeout: async () => send(senderWith({ timeoutMs: 150 }), await raw(() => undefined)),
  http_status: async () =>
    send(senderWith(), await http((_request, response) => void response.writeHead(410).end())),
  target_refused: () => {
    const sender = senderWith({ allowPrivateTargets: false, resolve: at('10.0.0.1') });
    return send(sender, 'https://partner.test/');
  },
  protocol: async () => send(senderWith(), await raw((socket) => void socket.write('SSH-2.0-x\r\n'))),
};

describe('a failure', () => {
  it('has the class connect when the receiver resets the connection', async () => {
    const url = await raw((socket) => socket.resetAndDestroy());
    expect((await send(senderWith(), url)).error).toBe('connect: ECONNRESET');
  });

  it('has the class dns when the name has no address', async () => {
    const sender = senderWith({ resolve: () => Promise.resolve([]) });
    expect((await send(sender, 'http://nowhere.example/')).error).toBe('dns: ENODATA');
  });

  it.each(Object.entries(WAYS))('has the class %s', async (failureClass, fail) => {
    const result = await fail();
    expect(result).toMatchObject({ outcome: 'failed', responseBody: null, reusedConnection: false });
    expect(result.error).toMatch(new RegExp(`^${failureClass}(: [A-Z][A-Z0-9_]+)?$`));
    expect(result.statusCode).toBe(failureClass === 'http_status' ? 410 : null);
    expect(result.responseHeaders === null).toBe(failureClass !== 'http_status');
  });

  it('names none of the addresses that were tried', async () => {
    const sender = senderWith({ resolve: at('127.0.0.1', '::1', '127.0.0.2') });
    const result = await send(sender, 'http://partner.test:1/');
    expect(result.error).toBe('connect: ECONNREFUSED');
    expect(JSON.stringify(result)).not.toMatch(/127\.0|::1/);
  });

  it('includes nothing from an error except a plausible code', () => {
    const inner = Object.assign(new Error('connect 10.0.0.1:22'), { code: '10.0.0.1', address: '10.0.0.1' });
    expect(describeFailure(inner)).toBe('protocol');
    expect(describeFailure('10.0.0.1')).toBe('protocol');
    expect(describeFailure(null)).toBe('protocol');
  });
});

describe('an interruption', () => {
  it('aborts the attempt and becomes its outcome, unless the status line has arrived', async () => {
    const hanging = await raw(() => undefined);
    const control = new AbortController();
    setTimeout(() => control.abort(new JobInterrupted()), 50);
    expect(await send(senderWith(), hanging, control)).toMatchObject({
      outcome: 'interrupted',
      error: 'interrupted',
    });

    const late = new AbortController();
    const dripping = await raw((socket) => {
      drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n', 'c');
      setTimeout(() => late.abort(new JobInterrupted()), 800);
    });
    expect(await send(senderWith(), dripping, late)).toMatchObject({ outcome: 'delivered', statusCode: 200 });
  });

  it('prevents any sending when it happens before the connection is established', async () => {
    let requests = 0;
    const url = await http((_request, response) => {
      requests++;
      response.end();
    });
    const resolve: ResolveAddresses = async () => {
      await new Promise((done) => setTimeout(done, 150));
      return [{ address: '127.0.0.1', family: 4 }];
    };
    const sender = senderWith({ timeoutMs: 50, resolve });
    expect((await send(sender, url.replace('127.0.0.1', 'partner.example'))).error).toBe('timeout');
    await new Promise((done) => setTimeout(done, 300));
    expect(requests).toBe(0);
  });
});

const PUBLIC = '127.0.0.1';
const PRIVATE = '127.0.0.2';

/** A policy that treats one loopback address as public. */
class OnePublicAddress extends TargetPolicy {
  constructor() {
    super({ webhooks: { allowPrivateTargets: true } });
  }

  override refusesAddress(address: string): boolean {
    return address !== PUBLIC;
  }
}

/** Responds to each request with 200, and keeps its connections open. */
async function keepingReceiver(): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const port = await connections((socket) => {
    sockets.push(socket);
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  });
  return { port, sockets };
}

/** After a stall timers run first, and data that arrived meanwhile is read a turn later. */
const afterReply = async (): Promise<void> => {
  await sleep(30);
  await nextTurn();
  await nextTurn();
};

describe('a keep-alive connection', () => {
  it('stays at its checked address, and a new connection to a name that now resolves privately is refused', async () => {
    const { port, sockets } = await keepingReceiver();
    let address = PUBLIC;
    const nameServer = await NameServer.start({ 'moved.test': () => ({ a: [address] }) });
    const resolve = nameServerResolver(() => [nameServer.address]);
    const sender = senderWith({ policy: new OnePublicAddress(), resolve });
    const dials = watchDials();
    const url = `http://moved.test:${port}/hook`;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
    await afterReply();
    address = PRIVATE;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: true });
    expect([nameServer.questions.length, sockets.length]).toEqual([2, 1]);
    sockets[0]!.destroy();
    await afterReply();
    expect(await send(sender, url)).toMatchObject({ outcome: 'failed', error: 'target_refused' });
    expect(dials).toEqual([`${PUBLIC} ${port}`]);
    expect(nameServer.questions).toHaveLength(4);
  });

  it('is not opened alongside a busy connection without a new DNS lookup', async () => {
    const { port } = await keepingReceiver();
    let address = PUBLIC;
    const nameServer = await NameServer.start({ 'moved.test': () => ({ a: [address] }) });
    const resolve = nameServerResolver(() => [nameServer.address]);
    const sender = senderWith({ policy: new OnePublicAddress(), resolve });
    const url = `http://moved.test:${port}/hook`;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered' });
    await afterReply();
    address = PRIVATE;
    const results = await Promise.all([send(sender, url), send(sender, url)]);
    expect(results.map(({ error }) => error).toSorted()).toEqual(['target_refused', null].toSorted());
    expect(results.filter(({ reusedConnection }) => reusedConnection)).toHaveLength(1);
  });

  it('is separated by name and port, even on one address', async () => {
    const [first, second] = [await keepingReceiver(), await keepingReceiver()];
    const nameServer = await NameServer.start({ 'a.test': { a: [PUBLIC] }, 'b.test': { a: [PUBLIC] } });
    const sender = senderWith({ resolve: nameServerResolver(() => [nameServer.address]) });
    for (const url of [
      `http://a.test:${first.port}/`,
      `http://b.test:${first.port}/`,
      `http://a.test:${second.port}/`,
    ]) {
      expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
      await afterReply();
    }
    expect([first.sockets.length, second.sockets.length]).toEqual([2, 1]);
    expect(await send(sender, `http://a.test:${first.port}/other`)).toMatchObject({ reusedConnection: true });
  });
});
