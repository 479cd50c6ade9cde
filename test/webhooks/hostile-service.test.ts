import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { connections } from './sending/receivers.js';
import { deliveryThat, recordEvent, registerEndpoint } from './support.js';

let service: TestService;
beforeAll(async () => {
  // One attempt is enough to see what the log says.
  const env = { LEASE_MS: '60000', WEBHOOK_TIMEOUT_MS: '5000', WEBHOOK_RETRY_DELAYS_MS: '60000' };
  service = await startTestService({ env });
});
afterAll(() => service.stop());

const OK = 'HTTP/1.1 200 OK\r\n';
/** Made before any attempt: compressing takes longer than an attempt may, and holds up the sender in this process. */
const BOMB = gzipSync(Buffer.alloc(50_000_000));

/** What the admin API says of the first attempt at a receiver that does `speak`. */
async function loggedAttempt(speak: (socket: Socket) => void) {
  const partner: TestPartner = await service.createPartner();
  const port = await connections((socket) => socket.once('data', () => speak(socket)));
  const endpoint = await registerEndpoint(service, partner.id, { url: `http://127.0.0.1:${port}/hook` });
  await recordEvent(service, { partnerId: partner.id });
  const { attempts } = await deliveryThat(service, endpoint, 'was tried', ({ attempt_count: n }) => n > 0);
  return attempts[0]!;
}

describe('the log of a hostile receiver stays readable through the admin API', () => {
  it.each([
    [
      'NUL and invalid UTF-8 in its body and headers',
      (socket: Socket) =>
        void socket.write(
          Buffer.concat([
            Buffer.from(`${OK}X-A: `),
            Buffer.from([0xff, 0xc3, 0x28]),
            Buffer.from('\r\nContent-Length: 5\r\n\r\na\0b'),
            Buffer.from([0xff, 0xfe]),
          ]),
        ),
      { outcome: 'delivered', status_code: 200, error: null, response_body: 'ab\ufffd\ufffd' },
    ],
    [
      'half a surrogate pair, written as UTF-8 must not be',
      (socket: Socket) =>
        void socket.write(
          Buffer.concat([Buffer.from(`${OK}Content-Length: 3\r\n\r\n`), Buffer.from([0xed, 0xa0, 0x80])]),
        ),
      { outcome: 'delivered', response_body: '\ufffd\ufffd\ufffd' },
    ],
    [
      'a gzip bomb',
      (socket: Socket) => {
        socket.write(`${OK}Content-Encoding: gzip\r\nContent-Length: ${BOMB.length}\r\n\r\n`);
        socket.write(BOMB);
      },
      { outcome: 'delivered', status_code: 200, response_body: expect.stringMatching(/^\x1f\ufffd/) },
    ],
    [
      'a megabyte of headers',
      (socket: Socket) => void socket.write(`${OK}X-A: ${'a'.repeat(1_000_000)}\r\n\r\n`),
      { outcome: 'delivered', status_code: 200, error: null, response_body: null },
    ],
    [
      'ten thousand 1xx and no answer',
      (socket: Socket) => void socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(10_000)),
      { outcome: 'failed', status_code: null, error: 'protocol: INFORMATIONAL_FLOOD' },
    ],
    [
      'a body that stops in the middle of a character',
      (socket: Socket) => {
        socket.write(`${OK}Content-Length: 100\r\n\r\n`);
        socket.write(Buffer.from('ab🦊').subarray(0, 4));
        setTimeout(() => socket.resetAndDestroy(), 50);
      },
      { outcome: 'delivered', status_code: 200, response_body: 'ab' },
    ],
    [
      'headers that are names of every object',
      (socket: Socket) => void socket.write(`${OK}__proto__: a\r\nContent-Length: 0\r\n\r\n`),
      { outcome: 'delivered', status_code: 200, response_body: null },
    ],
    [
      'a status that no standard knows',
      (socket: Socket) => void socket.write('HTTP/1.1 999 Hm\r\nContent-Length: 0\r\n\r\n'),
      { outcome: 'failed', status_code: 999, error: 'http_status' },
    ],
  ])('%s', async (_what, speak, expected) => {
    expect(await loggedAttempt(speak)).toMatchObject({ number: 1, ...expected });
  });
});
