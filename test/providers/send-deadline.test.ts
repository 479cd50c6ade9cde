import { once } from 'node:events';
import { createServer as createHttpServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callProvider, type EsimProvider, ProviderUnavailable } from '../../src/providers/index.js';
import {
  CircuitBreaker,
  type RateLimitedCall,
  ProviderHttpClient,
  type ProviderRateLimiter,
} from '../../src/providers/http/index.js';

const TIMEOUT_MS = 200;

/** Blocks this thread, including timers and sockets. */
function freezeFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('a purchase whose process freezes before it is sent', () => {
  const taken: string[] = [];
  const sockets: Socket[] = [];
  let server: Server;
  let client: ProviderHttpClient;
  let breaker: CircuitBreaker;
  /** Outcomes reported to the provider's health, oldest first. */
  const told: string[] = [];
  let waitForSlot: () => Promise<void>;

  beforeEach(async () => {
    taken.length = 0;
    told.length = 0;
    // A single failure opens the circuit breaker, so the test notices every failure.
    breaker = new CircuitBreaker({ failuresToOpen: 1 });
    server = createHttpServer((request, response) => {
      taken.push(`${request.method} ${request.url}`);
      response.end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    waitForSlot = () => Promise.resolve();
    client = new ProviderHttpClient({
      provider: 'w',
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      // Longer than the placement's deadline, so that the deadline takes effect first.
      timeoutMs: 10_000,
      pace: {
        inSlot: async (_call: RateLimitedCall, send: (closesAt: number) => Promise<unknown>) => {
          await waitForSlot();
          return send(Infinity);
        },
      } as unknown as ProviderRateLimiter,
      breaker,
      logger: pino({ level: 'silent' }),
      health: {
        recordOk: () => void told.push('ok'),
        recordError: (_provider, code) => void told.push(code),
      },
    });
  });

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await client.close();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  function buy(
    since: number = performance.now(),
    headers: () => Record<string, string> = () => ({}),
    timeoutMs = TIMEOUT_MS,
  ) {
    return callProvider(
      { timeoutMs } as EsimProvider,
      (signal) =>
        client.request({
          method: 'POST',
          path: '/buy',
          headers,
          body: '{}',
          purpose: 'order',
          effect: 'none',
          signal,
        }),
      since,
    );
  }

  /**
   * Makes a GET, which leaves a keep-alive connection open. Its response proves that all earlier writes have arrived.
   */
  async function look(): Promise<void> {
    waitForSlot = () => Promise.resolve();
    const signal = new AbortController().signal;
    await client.request({
      method: 'GET',
      path: '/look',
      headers: {},
      purpose: 'poll',
      effect: 'none',
      signal,
    });
  }

  it('is sent when there is time', async () => {
    await expect(buy(undefined, undefined, 10_000)).resolves.toEqual({ status: 200, json: {} });
    expect(taken).toEqual(['POST /buy']);
  });

  it('does not start when too much time has passed since it was recorded', async () => {
    const notedAfter = performance.now();
    freezeFor(TIMEOUT_MS + 1);
    await expect(buy(notedAfter)).rejects.toBeInstanceOf(ProviderUnavailable);
    await look();
    expect(taken).toEqual(['GET /look']);
  });

  it('may use only the rest of its time', async () => {
    waitForSlot = () => delay(10_000, undefined, { ref: false });
    const startedAt = performance.now();
    await expect(buy(startedAt - 8_000 + 100, undefined, 8_000)).rejects.toThrow();
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });

  it('is neither sent nor signed after a freeze while it waited for its slot', async () => {
    let signatures = 0;
    await look();
    waitForSlot = async () => {
      const slot = delay(20);
      // After the freeze both timers are due, and the slot's timer fires first.
      setImmediate(() => freezeFor(TIMEOUT_MS * 2));
      await slot;
    };
    await expect(buy(undefined, () => ({ signature: String(++signatures) }))).rejects.toThrow();
    await look();
    expect(taken).toEqual(['GET /look', 'GET /look']);
    expect(signatures).toBe(0);
  });

  it('is not sent after a freeze while it waited for its connection', async () => {
    await freezeAtConnection();
    await expect(buy()).rejects.toThrow();
    await look();
    expect(taken).toEqual(['GET /look']);
  });

  it("does not affect the provider's circuit or health, which count only sent calls", async () => {
    await freezeAtConnection();
    await expect(buy()).rejects.toBeInstanceOf(ProviderUnavailable);
    expect([breaker.state, told]).toEqual(['closed', []]);
    await look();
    expect([breaker.state, told]).toEqual(['closed', ['ok']]);
  });

  /** Freezes the process once the next call has its slot and is about to open its connection. */
  async function freezeAtConnection(): Promise<void> {
    const { near, far } = await connectedPair();
    near.once('data', () => freezeFor(TIMEOUT_MS * 2));
    waitForSlot = async () => {
      // Runs in the timer phase, so the loop next polls the data that triggers the freeze together with the connection,
      // which it handles afterwards and before any timer.
      await delay(5);
      far.write('freeze');
    };
  }

  async function connectedPair(): Promise<{ near: Socket; far: Socket }> {
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const near = connect((listener.address() as AddressInfo).port, '127.0.0.1');
    const [far] = (await once(listener, 'connection')) as [Socket];
    sockets.push(near, far);
    listener.close();
    return { near, far };
  }
});
