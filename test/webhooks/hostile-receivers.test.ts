import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { AttemptResult } from '../../src/webhooks/worker/attempt-result.js';
import {
  MAX_ANSWER_BYTES,
  MAX_HEADER_BYTES,
  MAX_INFORMATIONAL_ANSWERS,
  MAX_INFORMATIONAL_BYTES,
} from '../../src/webhooks/worker/answer-head.js';
import { MAX_RESPONSE_BYTES, MAX_SUCCESS_BYTES } from '../../src/webhooks/worker/webhook-sender.js';
import { collectGarbage } from '../harness/collect-garbage.js';
import { connections, drip, flood, raw } from './sending/receivers.js';
import { send, senderWith } from './sending/sender.js';

/** More than a busy machine needs for an outcome. */
const TIMEOUT_MS = 4_000;
const OK = 'HTTP/1.1 200 OK\r\n';

async function attempt(speak: (socket: Socket) => void): Promise<AttemptResult> {
  const url = await raw(speak);
  const sender = senderWith({ timeoutMs: TIMEOUT_MS });
  const startedAt = performance.now();
  // On a busy machine, this timer is as late as the sender's own. It does not fire if the attempt ends first.
  let deadlineMs = TIMEOUT_MS;
  const deadline = setTimeout(() => (deadlineMs = performance.now() - startedAt), TIMEOUT_MS);
  const result = await send(sender, url);
  clearTimeout(deadline);
  expectReadable(result);
  expect(result.phases!.totalMs).toBeLessThan(deadlineMs + 1_000);
  return result;
}

/** Expects text within the caps that PostgreSQL accepts. */
function expectReadable({ responseBody, responseHeaders, error }: AttemptResult): void {
  for (const text of [responseBody ?? '', error ?? '', JSON.stringify(responseHeaders)]) {
    expect(text).not.toMatch(/\0|\\u0000/);
    expect(text.isWellFormed()).toBe(true);
  }
  expect((responseBody ?? '').length).toBeLessThanOrEqual(MAX_RESPONSE_BYTES);
}

const bytes =
  (...parts: (string | Buffer)[]) =>
  (socket: Socket): void =>
    parts.forEach((part) => socket.write(part));

const bytesThenEnd = (text: string) => (socket: Socket) => void socket.end(text);

describe('a receiver that sends a status and then misbehaves', () => {
  it.each([
    [
      'drips its body until the deadline',
      (socket: Socket) => drip(socket, `${OK}Content-Length: 99\r\n\r\n`, 'b'),
    ],
    ['never sends the body it announced', bytes(`${OK}Content-Length: 10000000000\r\n\r\n`)],
    ['closes before the body is complete', bytesThenEnd(`${OK}Content-Length: 100\r\n\r\nbbb`)],
    ['sends more than it announced', bytes(`${OK}Content-Length: 2\r\n\r\nbbccccccc`)],
    ['sends a second response', bytes(`${OK}Content-Length: 0\r\n\r\n${OK}Content-Length: 0\r\n\r\n`)],
    ['sends chunks without a size', bytes(`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\nbb\r\n`)],
    ['sends a chunk of 2^64 bytes', bytes(`${OK}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nb`)],
    ['sends a chunk that is too short', bytesThenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nb`)],
    ['never sends the last chunk', bytes(`${OK}Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n`)],
    [
      'offers another protocol in a final response',
      bytes(`${OK}Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n`),
    ],
    [
      'announces gzip and sends plain text',
      bytes(`${OK}Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone`),
    ],
    [
      'has a header called __proto__',
      bytes(`${OK}__proto__: x\r\nconstructor: y\r\nContent-Length: 0\r\n\r\n`),
    ],
  ])('succeeds when it %s', async (_what, speak) => {
    expect(await attempt(speak)).toMatchObject({ outcome: 'delivered', statusCode: 200, error: null });
  });

  it.each([
    ['a 204 with a body', bytes('HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nbbb'), 'delivered', 204],
    ['a 500 that hangs in its body', bytes('HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\nb'), 'failed', 500],
    ['a status beyond 599', bytes('HTTP/1.1 999 Hm\r\nContent-Length: 0\r\n\r\n'), 'failed', 999],
    ['101 without an upgrade', bytes('HTTP/1.1 101 Go\r\n\r\n'), 'failed', 101],
  ])('is judged by its status: %s', async (_what, speak, outcome, statusCode) => {
    expect(await attempt(speak)).toMatchObject({ outcome, statusCode });
  });

  it('is cut off at the deadline when it sends one byte of its body a second', async () => {
    const url = await raw((socket) => drip(socket, `${OK}Content-Length: 99\r\n\r\n`, 'b', 1_000));
    const result = await send(senderWith({ timeoutMs: 2_500 }), url);
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200 });
    // Two bytes, unless the receiver's own timers are late.
    expect(result.responseBody).toMatch(/^b{1,2}$/);
    expect(result.phases!.totalMs).toBeGreaterThanOrEqual(2_495);
    expect(result.phases!.totalMs).toBeLessThan(10_000);
    expect(result.latencyMs).toBeLessThan(2_000);
  });

  it('may reset the connection during its body', async () => {
    const result = await attempt((socket) => {
      socket.write(`${OK}Content-Length: 100\r\n\r\npart`);
      setTimeout(() => socket.resetAndDestroy(), 30);
    });
    expect(result).toMatchObject({ outcome: 'delivered', responseBody: 'part' });
  });
});

describe('a receiver that sends no status', () => {
  it.each([
    ['closes before the response', (socket: Socket) => void socket.end(), /^connect: ECONNRESET$/],
    [
      'resets before the response',
      (socket: Socket) => void socket.resetAndDestroy(),
      /^connect: ECONNRESET$/,
    ],
    ['closes in the status line', bytesThenEnd('HTTP/1.1 20'), /^(protocol|connect): /],
    ['closes in the reason phrase', bytesThenEnd('HTTP/1.1 200 O'), /^connect: ECONNRESET$/],
    ['closes in the headers of a 1xx', bytesThenEnd('HTTP/1.1 103 Hi\r\nX-A: b'), /^connect: ECONNRESET$/],
    ['stops in the status line', bytes('HTTP/1.1 20'), /^timeout$/],
    ['drips headers', (socket: Socket) => drip(socket, `${OK}X-A: `, 'a'), /^timeout$/],
    ['speaks HTTP/0.9', bytesThenEnd('<html>hello</html>'), /^protocol: HPE_/],
    ['speaks HTTP/2', bytes(Buffer.from('000000040000000000', 'hex')), /^protocol: HPE_/],
    ['sends the preface of HTTP/2', bytes('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), /^protocol: HPE_/],
    [
      'sends an HTTP/2 GOAWAY',
      bytes(Buffer.from('0000080700000000000000000000000001', 'hex')),
      /^protocol: HPE_/,
    ],
    ['has a status of four digits', bytes('HTTP/1.1 2000 OK\r\n\r\n'), /^protocol: HPE_/],
    ['has a status without digits', bytes('HTTP/1.1 abc OK\r\n\r\n'), /^protocol: HPE_/],
    [
      'switches protocols',
      bytes('HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
      /^protocol: SWITCHING_PROTOCOLS$/,
    ],
  ])('fails with an error class when it %s', async (_what, speak, error) => {
    const result = await attempt(speak);
    expect(result).toMatchObject({ outcome: 'failed', statusCode: null, responseBody: null });
    expect(result.error).toMatch(error);
  });
});

describe('a receiver that never stops sending', () => {
  /** Growth of heap, buffers and the process in bytes, after some warm-up attempts. */
  async function growthOver(
    attempts: number,
    once: () => Promise<void>,
  ): Promise<{ rss: number; live: number }> {
    for (let i = 0; i < 5; i++) await once();
    const used = () => {
      collectGarbage();
      const { rss, heapUsed, external } = process.memoryUsage();
      return { rss, live: heapUsed + external };
    };
    const before = used();
    for (let i = 0; i < attempts; i++) await once();
    const after = used();
    return { rss: after.rss - before.rss, live: after.live - before.live };
  }

  it('is cut off after 16 KB of a 10 GB body, thirty times over, in flat memory', async () => {
    const written: { bytes: number }[] = [];
    const url = await raw((socket) => {
      socket.write(`${OK}Content-Length: 10000000000\r\n\r\n`);
      written.push(flood(socket, Buffer.alloc(64 * 1_024, 'x')));
    });
    const sender = senderWith();
    const growth = await growthOver(30, async () => {
      const result = await send(sender, url);
      expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200 });
      expect(result.responseBody).toBe('x'.repeat(MAX_SUCCESS_BYTES));
    });
    for (const { bytes: each } of written) expect(each).toBeLessThan(50_000_000);
    expect(growth.rss).toBeLessThan(100_000_000);
    expect(growth.live).toBeLessThan(50_000_000);
  });

  it('does not get its gzip bomb unpacked, and the log has its first bytes as text', async () => {
    const bomb = gzipSync(Buffer.alloc(100_000_000));
    const head = `${OK}Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`;
    const url = await raw(bytes(head, bomb));
    const sender = senderWith();
    const growth = await growthOver(20, async () => {
      const result = await send(sender, url);
      expectReadable(result);
      expect(result).toMatchObject({ outcome: 'delivered' });
      expect(result.responseBody).toMatch(/^\x1f\ufffd/);
      expect(result.responseHeaders).toMatchObject({ 'content-encoding': 'gzip' });
    });
    expect(growth.rss).toBeLessThan(100_000_000);
  });

  it.each(['100 Continue', '102 Processing', '103 Early Hints\r\nLink: </a>; rel=preload'])(
    'may send %s a hundred times before the final status',
    async (line) => {
      const informed = `HTTP/1.1 ${line}\r\n\r\n`.repeat(MAX_INFORMATIONAL_ANSWERS);
      const silent = await raw(bytes(informed));
      expect(await send(senderWith({ timeoutMs: 1_000 }), silent)).toMatchObject({
        ...{ outcome: 'failed', statusCode: null, error: 'timeout' },
      });
      const answering = await raw(bytes(informed, `${OK}Content-Length: 0\r\n\r\n`));
      expect(await send(senderWith(), answering)).toMatchObject({ outcome: 'delivered', statusCode: 200 });
    },
  );

  it.each([
    ['more than a hundred', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(MAX_INFORMATIONAL_ANSWERS + 1)],
    ['ten of 15 KB', `HTTP/1.1 103 Early Hints\r\nX-A: ${'a'.repeat(15_000)}\r\n\r\n`.repeat(10)],
    ['an endless one', `HTTP/1.1 103 Early Hints\r\nX-A: ${'a'.repeat(MAX_INFORMATIONAL_BYTES)}`],
  ])('fails at once after informational responses: %s', async (_what, answers) => {
    const url = await raw((socket) => void socket.write(answers));
    const result = await send(senderWith(), url);
    expect(result).toMatchObject({ outcome: 'failed', statusCode: null });
    expect(result.error).toBe('protocol: INFORMATIONAL_FLOOD');
  });

  it('is cut off after the first bytes when it sends informational responses at full speed', async () => {
    let written = { bytes: 0 };
    const url = await raw(
      (socket) => (written = flood(socket, `HTTP/1.1 103 Hm\r\nX-A: ${'a'.repeat(14_000)}\r\n\r\n`)),
    );
    expect(await send(senderWith(), url)).toMatchObject({ error: 'protocol: INFORMATIONAL_FLOOD' });
    // The kernel buffers of both sides.
    expect(written.bytes).toBeLessThan(20_000_000);
  });
});

describe('a response that is longer than our limit', () => {
  it.each([20_000, MAX_HEADER_BYTES - 200])('is read completely with %i bytes of headers', async (size) => {
    const url = await raw(bytes(`${OK}X-A: ${'a'.repeat(size)}\r\nX-B: b\r\nContent-Length: 2\r\n\r\nhi`));
    const result = await send(senderWith(), url);
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200, error: null, responseBody: 'hi' });
    expect(result.responseHeaders).toMatchObject({ 'x-b': 'b' });
  });

  it.each([
    ['a megabyte in one header', 200, bytes(`${OK}X-A: ${'a'.repeat(1_000_000)}\r\n\r\n`)],
    [
      'endless headers',
      200,
      (socket: Socket) => void (socket.write(OK) && flood(socket, 'X-A: b\r\n'.repeat(1_000))),
    ],
    [
      'a megabyte of headers after 1xx',
      204,
      bytes('HTTP/1.1 100 Continue\r\n\r\n', `HTTP/1.1 204 Ok\r\nX-A: ${'a'.repeat(1_000_000)}\r\n\r\n`),
    ],
  ])('is judged by its status line: %s', async (_what, statusCode, speak) => {
    expect(await attempt(speak)).toMatchObject({
      outcome: 'delivered',
      statusCode,
      error: null,
      responseHeaders: null,
    });
  });

  it('is a failure if its status line is not a 2xx', async () => {
    const result = await attempt(bytes(`HTTP/1.1 503 No\r\nX-A: ${'a'.repeat(1_000_000)}\r\n\r\n`));
    expect(result).toMatchObject({ outcome: 'failed', statusCode: 503, error: 'http_status' });
  });

  it('is judged by the status code of an overlong status line', async () => {
    const result = await attempt(bytes(`HTTP/1.1 200 ${'a'.repeat(1_000_000)}\r\n\r\n`));
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200 });
  });

  it.each([
    ['chunk extensions', `1;${'e'.repeat(10_000)}\r\nx\r\n`],
    ['chunks of one byte', '1\r\nx\r\n'.repeat(1_000)],
    ['trailers', `0\r\n${'X-T: t\r\n'.repeat(1_000)}`],
  ])('is cut off in the framing of its body without changing the outcome: %s', async (_what, chunk) => {
    let written = { bytes: 0 };
    const result = await attempt((socket) => {
      socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n`);
      written = flood(socket, chunk);
    });
    expect(result).toMatchObject({ outcome: 'delivered', statusCode: 200 });
    expect(result.phases!.totalMs).toBeLessThan(TIMEOUT_MS);
    expect(written.bytes).toBeLessThan(20_000_000 + MAX_ANSWER_BYTES);
  });
});

describe('a response with unreadable headers', () => {
  it.each([
    ['no colon', 'Server\r\n\r\n'],
    ['a space in a name', 'X Bad: 1\r\n\r\n'],
    ['a space before the colon', 'Server : x\r\n\r\n'],
    ['an empty name', ': x\r\n\r\n'],
    ['a value folded into a new line', 'X-A: a\r\n b\r\n\r\n'],
    ['a NUL in a value', 'X-A: a\0b\r\n\r\n'],
    ['a control character in a value', 'X-A: a\x01b\r\n\r\n'],
    ['lines that end without CR', 'X-A: b\n\n'],
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 2\r\n\r\nok'],
    ['a list of lengths', 'Content-Length: 2, 2\r\n\r\nok'],
    ['a negative length', 'Content-Length: -1\r\n\r\n'],
    ['a length of 2^64', 'Content-Length: 18446744073709551616\r\n\r\n'],
    ['a length and chunks', 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ])('is judged by its status line: %s', async (_what, rest) => {
    for (const before of ['', '\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'])
      expect(await attempt(bytes(`${before}${OK}${rest}`))).toMatchObject({
        ...{ outcome: 'delivered', statusCode: 200, error: null, responseHeaders: null, responseBody: null },
      });
    expect(await attempt(bytes(`HTTP/1.1 500 Oops\r\n${rest}`))).toMatchObject({
      ...{ outcome: 'failed', statusCode: 500, error: 'http_status', responseHeaders: null },
    });
  });

  it.each([
    ['closes', bytesThenEnd(`${OK}X-A: b`)],
    ['closes after the status line', bytesThenEnd(OK)],
    [
      'resets the connection',
      (socket: Socket) =>
        void socket.write(`${OK}X-A: b`, () => setTimeout(() => socket.resetAndDestroy(), 50)),
    ],
  ])('is judged by its status line when the receiver %s during the headers', async (_what, speak) => {
    expect(await attempt(speak)).toMatchObject({
      outcome: 'delivered',
      statusCode: 200,
      responseHeaders: null,
    });
  });
});

describe('an unsolicited response', () => {
  const answer = (status: number) => `HTTP/1.1 ${status} Hm\r\nContent-Length: 0\r\n\r\n`;

  it('counts as the response when it arrives before the request', async () => {
    const port = await connections((socket) => void socket.write(answer(503)));
    const result = await send(senderWith(), `http://127.0.0.1:${port}/hook`);
    expect(result).toMatchObject({ outcome: 'failed', statusCode: 503 });
  });

  it('does not count as the response to the next webhook when it arrives on an idle connection', async () => {
    let requests = 0;
    let told = (): void => undefined;
    const surplus = new Promise<void>((resolve) => (told = resolve));
    const port = await connections((socket) =>
      socket.on('data', () => {
        requests++;
        if (requests > 1) return void socket.write(answer(500));
        socket.write(answer(200));
        setTimeout(() => socket.write(answer(201), () => setTimeout(told, 50)), 50);
      }),
    );
    const sender = senderWith();
    const url = `http://127.0.0.1:${port}/hook`;
    expect(await send(sender, url)).toMatchObject({ statusCode: 200 });
    await surplus;
    expect(await send(sender, url)).toMatchObject({ statusCode: 500, reusedConnection: false });
  });
});
