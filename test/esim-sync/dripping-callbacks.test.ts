import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { startCallbacks } from '../../src/apps/callbacks.app.js';
import { loadConfig } from '../../src/config/index.js';
import { collectGarbage } from '../harness/collect-garbage.js';
import { testEnvironment } from '../harness/index.js';
import { callAt, ENV, PATH } from './callback-calls.js';
import { SECRET } from './live-world.js';

/** The test passes the callback handler, so no database is needed. */
const NO_DATABASE = 'postgres://127.0.0.1:9/none';

const PIECE_EVERY_MS = 100;

/** Sends a head at once and then pieces one by one until the listener hangs up. */
class DrippingClient {
  private received = '';
  private readonly socket: Socket;
  private readonly startedAt = performance.now();
  private readonly ended: Promise<number>;

  constructor(url: string, head: string, piece: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect(Number(port), hostname);
    this.socket
      .setNoDelay(true)
      .setEncoding('latin1')
      .on('error', () => undefined);
    this.socket.on('data', (text) => (this.received += String(text)));
    this.socket.write(head);
    const timer = setInterval(() => this.socket.write(piece), PIECE_EVERY_MS);
    this.ended = new Promise((resolve) => {
      this.socket.on('close', () => {
        clearInterval(timer);
        resolve(performance.now() - this.startedAt);
      });
    });
  }

  get isOpen(): boolean {
    return !this.socket.closed;
  }

  /** The status of each response that arrived before a possible reset, and the time until the listener hung up. */
  async cut(): Promise<{ statuses: number[]; afterMs: number }> {
    const afterMs = await this.ended;
    const statuses = [...this.received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
    return { statuses, afterMs };
  }
}

function liveHeapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe('a client that sends a callback one byte at a time', () => {
  const LIMIT_MS = 10_000;
  const LATEST_MS = LIMIT_MS + 10_000;
  const START = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
  const CHUNKED = `${START}transfer-encoding: chunked\r\n\r\n`;

  /** Starts a listener with short timeouts. */
  async function startImpatient() {
    const taken: unknown[] = [];
    const take = {
      knows: () => true,
      take: (_provider: string, body: unknown) => Promise.resolve((taken.push(body), [])),
    };
    const config = loadConfig(testEnvironment(NO_DATABASE, ENV));
    const running = (await startCallbacks(
      { config, logger: pino({ level: 'silent' }), metrics: new Registry() },
      take,
      () => Promise.resolve(null),
      LIMIT_MS,
    ))!;
    return { ...running, taken };
  }

  it('receives 408 after the limit, and delays nobody until then', async () => {
    const listener = await startImpatient();
    const drips: [string, string][] = [
      ['', ''],
      ['POST /', 'x'],
      [START, 'x'],
      [`${START}content-length: 60000\r\n\r\n`, ' '],
      [CHUNKED, '1\r\n \r\n'],
    ];
    const clients = Array.from({ length: 10 }, () => drips).flatMap((each) =>
      each.map(([head, piece]) => new DrippingClient(listener.url, head, piece)),
    );
    for (let i = 0; i < 5; i++) expect((await callAt(PATH, { url: listener.url })).status).toBe(200);
    expect(clients.every((client) => client.isOpen)).toBe(true);
    const cuts = await Promise.all(clients.map((client) => client.cut()));
    expect(new Set(cuts.flatMap(({ statuses }) => statuses))).toEqual(new Set([408]));
    for (const { afterMs } of cuts) {
      expect(afterMs).toBeGreaterThan(LIMIT_MS - 50);
      expect(afterMs).toBeLessThan(LATEST_MS);
    }
    expect(listener.taken).toHaveLength(5);
    await listener.close(1_000);
  });

  it('is also cut off after a refusal or a response', async () => {
    const listener = await startImpatient();
    const length = 'content-length: 60000\r\n\r\n';
    const refused = new DrippingClient(listener.url, START.replace(SECRET, 'x') + length, ' ');
    const looking = new DrippingClient(listener.url, START.replace('POST', 'HEAD') + length, ' ');
    const [no, yes] = await Promise.all([refused.cut(), looking.cut()]);
    expect([no.statuses[0], yes.statuses[0]]).toEqual([404, 200]);
    expect(Math.max(no.afterMs, yes.afterMs)).toBeLessThan(LATEST_MS);
    await listener.close(1_000);
  });

  it('uses no more memory than the bytes it sent', async () => {
    const listener = await startImpatient();
    const piece = '1\r\n \r\n';
    const before = liveHeapBytes();
    const client = new DrippingClient(listener.url, CHUNKED + piece.repeat(60_000), piece);
    let most = 0;
    while (client.isOpen) {
      await sleep(50);
      most = Math.max(most, liveHeapBytes() - before);
    }
    expect(most).toBeLessThan(4_000_000);
    await listener.close(1_000);
  });
});
