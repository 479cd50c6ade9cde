import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { ResolveAddresses } from '../../src/infra/network/resolve-addresses.js';
import { JobInterrupted } from '../../src/infra/jobs/index.js';
import { MAX_SUCCESS_BYTES } from '../../src/webhooks/worker/webhook-sender.js';
import { drip, http, raw } from './sending/receivers.js';
import { send, senderWith } from './sending/sender.js';

describe('what decides the outcome', () => {
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

  it('does not follow a redirect', async () => {
    let requests = 0;
    const url = await http((request, response) => {
      requests++;
      response.writeHead(302, { location: request.url === '/hook' ? '/other' : '/' }).end();
    });
    expect(await send(senderWith(), url)).toMatchObject({ outcome: 'failed', statusCode: 302 });
    expect(requests).toBe(1);
  });

  it('waits for the final status behind 1xx, and fails for 101', async () => {
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
    const onlyInformed = await raw((socket) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n'));
    expect(await send(senderWith({ timeoutMs: 300 }), onlyInformed)).toMatchObject({
      outcome: 'failed',
      error: 'timeout',
    });
    const switching = await raw(
      (socket) =>
        void socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    );
    expect(await send(senderWith(), switching)).toMatchObject({
      outcome: 'failed',
      error: 'protocol: SWITCHING_PROTOCOLS',
    });
  });
});

describe('the deadline', () => {
  it.each([
    ['never answers', () => undefined],
    ['sends half a status line', (socket: Socket) => void socket.write('HTTP/1.1 20')],
    ['drips headers', (socket: Socket) => drip(socket, 'HTTP/1.1 200 OK\r\nx: ', 'a')],
  ])('cuts a receiver that %s', async (_what, answer) => {
    const url = await raw(answer);
    const startedAt = performance.now();
    const result = await send(senderWith({ timeoutMs: 400 }), url);
    expect(result).toMatchObject({ outcome: 'failed', statusCode: null, error: 'timeout' });
    expect(result.latencyMs).toBeGreaterThanOrEqual(395);
    // Without a deadline it would take for ever; a busy machine may be late.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('cuts a name server that never answers', async () => {
    const sender = senderWith({ timeoutMs: 300, resolve: () => new Promise(() => undefined) });
    const startedAt = performance.now();
    expect(await send(sender, 'http://partner.example/hook')).toMatchObject({
      outcome: 'failed',
      error: 'timeout',
    });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('ends the reading of a body that drips, without changing the outcome or the latency', async () => {
    const url = await raw((socket) => drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n', 'b'));
    const result = await send(senderWith({ timeoutMs: 2_000 }), url);
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200, error: null });
    expect(result.responseBody).toMatch(/^b{2,}$/);
    expect(result.latencyMs).toBeLessThan(1_500);
    expect(result.phases!.totalMs).toBeGreaterThanOrEqual(1_995);
    expect(result.phases!.totalMs).toBeLessThan(10_000);
  });

  it('alone ends an attempt: a receiver may be silent for longer than an idle connection', async () => {
    const url = await http(
      (_request, response) => void setTimeout(() => response.writeHead(200).end(), 5_000),
    );
    expect(await send(senderWith(), url)).toMatchObject({ outcome: 'delivered' });
  });

  it('measures what the receiver takes, not more', async () => {
    const url = await http((_request, response) => void setTimeout(() => response.writeHead(200).end(), 250));
    const latencies: number[] = [];
    for (let i = 0; i < 5; i++) latencies.push((await send(senderWith(), url)).latencyMs);
    // A busy machine may be late, not every time.
    expect(Math.min(...latencies)).toBeGreaterThanOrEqual(248);
    expect(Math.min(...latencies)).toBeLessThan(400);
  });
});

describe('the response body', () => {
  it('is read up to 16 KB, however much comes', async () => {
    let written = 0;
    const url = await http((_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(64 * 1_024, 'x');
      const more = (): void => {
        while (!response.destroyed && written < 1_000_000_000) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', more);
        }
      };
      more();
    });
    const result = await send(senderWith(), url);
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200 });
    expect(result.responseBody).toHaveLength(MAX_SUCCESS_BYTES);
    expect(written).toBeLessThan(50_000_000);
  });

  it('is kept up to 2 KB of a success and up to 16 KB of a failure, without half a character', async () => {
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

  it('is kept as text that a table takes: NUL and invalid UTF-8 are replaced, gzip is not unpacked', async () => {
    const bytes = Buffer.concat([Buffer.from('a\0b'), Buffer.from([0xff]), gzipSync('x'.repeat(1_000_000))]);
    const url = await http((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes);
    });
    const { responseBody } = await send(senderWith(), url);
    expect(responseBody).toMatch(/^ab\ufffd/);
    expect(responseBody).not.toContain('\0');
    expect(responseBody!.length).toBeLessThan(2_000);
  });

  it('leaves the connection usable when it was read to its end', async () => {
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

  it('is null when there is none, and a connection that breaks in it changes nothing', async () => {
    const empty = await http((_request, response) => void response.writeHead(204).end());
    expect((await send(senderWith(), empty)).responseBody).toBeNull();
    const broken = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart');
      setTimeout(() => socket.resetAndDestroy(), 30);
    });
    expect(await send(senderWith(), broken)).toMatchObject({ outcome: 'delivered', responseBody: 'part' });
  });
});

describe('failures are told apart', () => {
  it('connect: refused, reset', async () => {
    const url = await raw((socket) => socket.resetAndDestroy());
    expect((await send(senderWith(), url)).error).toBe('connect: ECONNRESET');
    expect((await send(senderWith(), 'http://127.0.0.1:1/')).error).toBe('connect: ECONNREFUSED');
  });

  it('dns', async () => {
    const resolve: ResolveAddresses = () =>
      Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' }));
    expect((await send(senderWith({ resolve }), 'http://nowhere.example/')).error).toBe('dns: ENOTFOUND');
    expect(
      (await send(senderWith({ resolve: () => Promise.resolve([]) }), 'http://nowhere.example/')).error,
    ).toBe('dns: ENODATA');
  });

  it('tls: a server that speaks plain HTTP', async () => {
    const url = await http((_request, response) => void response.end());
    expect((await send(senderWith(), url.replace('http:', 'https:'))).error).toMatch(/^tls: /);
  });

  it('protocol: noise', async () => {
    const url = await raw((socket) => void socket.write('SSH-2.0-OpenSSH_9.0\r\n'));
    expect((await send(senderWith(), url)).error).toMatch(/^protocol: /);
  });
});

describe('an interruption', () => {
  it('cuts the attempt and is its outcome, unless the status line is there', async () => {
    const hanging = await raw(() => undefined);
    const control = new AbortController();
    setTimeout(() => control.abort(new JobInterrupted()), 50);
    expect(await send(senderWith(), hanging, control)).toMatchObject({
      outcome: 'interrupted',
      error: 'interrupted',
    });

    const dripping = await raw((socket) =>
      drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n', 'c'),
    );
    const late = new AbortController();
    setTimeout(() => late.abort(new JobInterrupted()), 800);
    expect(await send(senderWith(), dripping, late)).toMatchObject({ outcome: 'delivered', statusCode: 200 });
  });

  it('before the connection is there sends nothing afterwards', async () => {
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
