import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import tls, { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import {
  CircuitBreaker,
  ProviderHealthRepository,
  ProviderHttpClient,
  ProviderMetrics,
  type ProviderPlacement,
} from '../../src/providers/http/index.js';
import type { ResolveAddresses } from '../../src/infra/network/resolve-addresses.js';
import { deafAddress } from '../harness/deaf-address.js';
import { eventually } from '../harness/index.js';
import { freePort } from '../../chaos/free-port.js';
import { TestAuthority } from '../webhooks/sending/certificates.js';
import { useTestDataSource } from './esim-access-world.js';
import { FOREIGN_RECORD, PLAIN_ANSWER, startTlsProvider, type TlsProviderOptions } from './tls-providers.js';
import { newPlacementGuard, UNPACED } from './provider-world.js';

/** The provider treats a repetition as the same request, so the guard counts nothing. */
const PLACEMENT: ProviderPlacement = {
  ...({ provider: 'w', operation: 'order', key: 'one', reference: 'one' } as const),
  policy: { repeat: 'same_request', source: 'a test' },
};

describe('the client of a provider', () => {
  const bed = useTestDataSource();
  const closers: (() => Promise<unknown>)[] = [];
  const logLines: Record<string, unknown>[] = [];
  const logger = pino({}, { write: (line: string) => void logLines.push(JSON.parse(line)) });

  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
    logLines.length = 0;
  });

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  function newClient(
    baseUrl: string,
    options: {
      breaker?: CircuitBreaker;
      maxAnswerBytes?: number;
      metrics?: ProviderMetrics;
      provider?: string;
      timeoutMs?: number;
      resolve?: ResolveAddresses;
    } = {},
  ) {
    const client = new ProviderHttpClient({
      // Longer than any call on a busy machine, because these tests check how a call ends, not when.
      ...{ provider: 'w', baseUrl, timeoutMs: 20_000, logger },
      pace: UNPACED,
      breaker: new CircuitBreaker(),
      health: new ProviderHealthRepository(bed.dataSource.manager, logger),
      ...options,
    });
    closers.push(() => client.close());
    return {
      client,
      get: (path = '/things', signal = new AbortController().signal) =>
        client.request({
          method: 'GET',
          path,
          headers: { 'x-key': 'hush' },
          purpose: 'poll',
          effect: 'none',
          signal,
        }),
      buy: () =>
        newPlacementGuard(bed.dataSource).run(PLACEMENT, (effect) =>
          client.request({
            ...{ method: 'POST', path: '/buy', headers: {}, body: '"one"', purpose: 'order', effect },
            signal: new AbortController().signal,
          }),
        ),
    };
  }

  it('returns the status and the JSON of a response, even of a refusal', async () => {
    const url = await serve(
      (_request, response) => void response.writeHead(404).end('{"errorCode":"NOT_FOUND"}'),
    );
    expect(await newClient(url).get()).toEqual({ status: 404, json: { errorCode: 'NOT_FOUND' } });
  });

  it('returns the status of a refusal that is not JSON', async () => {
    const url = await serve((_request, response) => void response.writeHead(403).end('<html>'));
    expect(await newClient(url).get()).toEqual({ status: 403, json: undefined });
  });

  it('follows no redirect', async () => {
    const paths: unknown[] = [];
    const url = await serve((request, response) => {
      paths.push(request.url);
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    expect(await newClient(url).get()).toMatchObject({ status: 302 });
    expect(paths).toEqual(['/things']);
  });

  it('counts calls by outcome, including those that the circuit blocked', async () => {
    const registry = new Registry();
    const metrics = new ProviderMetrics(registry);
    const statuses = [200, 404, 503];
    const url = await serve((_request, response) => void response.writeHead(statuses.shift()!).end('{}'));
    const breaker = new CircuitBreaker({ failuresToOpen: 1 });
    const { get } = newClient(url, { breaker, metrics });
    for (let call = 0; call < 4; call++) await get().catch(() => undefined);
    const text = await registry.metrics();
    const calls = [...text.matchAll(/^provider_calls_total\{.*outcome="(\w+)"\} (\d+)$/gm)];
    expect(calls.map(([, outcome, count]) => `${outcome} ${count}`)).toEqual([
      'answered 1',
      'refused 1',
      'server_error 1',
      'circuit_open 1',
    ]);
    expect(text).toMatch(/^provider_circuit_state\{provider="w"\} 2$/m);
    // A call that was never sent has neither a latency nor a slot.
    expect(text).toMatch(/^provider_call_duration_seconds_count\{.*\} 3$/m);
    expect(text).toMatch(/^provider_pace_wait_seconds_count\{.*\} 3$/m);
  });

  it('counts a call that ends with the deadline of its caller as a timeout', async () => {
    const registry = new Registry();
    const deadline = new AbortController();
    const url = await serve(() => deadline.abort(new ProviderOutcomeUnknown()));
    const { get } = newClient(url, { metrics: new ProviderMetrics(registry) });
    await expect(get('/things', deadline.signal)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    await eventually('its log line', () => logLines.length > 0);
    expect(logLines).toMatchObject([{ event: 'provider.call', code: 'timeout' }]);
    expect(await registry.metrics()).toMatch(/^provider_calls_total\{.*outcome="timeout"\} 1$/m);
  });

  it('throws ProviderUnavailable when nothing can have arrived', async () => {
    const closed = `http://127.0.0.1:${await freePort()}`;
    await expect(newClient(closed).get()).rejects.toBeInstanceOf(ProviderUnavailable);
    await expect(newClient('http://no-such-host.invalid').get()).rejects.toBeInstanceOf(ProviderUnavailable);
  });

  it.each([
    ['before', ['127.0.0.2', '127.0.0.1']],
    ['after', ['127.0.0.1', '127.0.0.2']],
  ])('reaches a provider with a dead address %s a live one', async (_where, list) => {
    const url = await serve((_request, response) => void response.end('{}'));
    const dead = await deafAddress('127.0.0.2', Number(new URL(url).port));
    closers.push(() => dead.close());
    const resolve = () => Promise.resolve(list.map((address) => ({ address, family: 4 })));
    const { get } = newClient(url.replace('127.0.0.1', 'wholesaler.test'), { resolve });
    expect(await get()).toMatchObject({ status: 200 });
  });

  it('reaches a provider despite a lost first SYN and a dead address', async () => {
    const slow = await deafAddress('127.0.0.3', 0, 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    const dead = await deafAddress('127.0.0.2', slow.port);
    closers.push(
      () => slow.close(),
      () => dead.close(),
    );
    const resolve = () =>
      Promise.resolve(['127.0.0.3', '127.0.0.2'].map((address) => ({ address, family: 4 })));
    const answer = newClient(`http://wholesaler.test:${slow.port}`, { resolve }).get();
    setTimeout(() => slow.hear(), 600);
    expect(await answer).toMatchObject({ status: 200 });
  });

  it('throws ProviderUnavailable when no address responds within the timeout', async () => {
    const dead = await deafAddress('127.0.0.2');
    closers.push(() => dead.close());
    const { get } = newClient(`http://127.0.0.2:${dead.port}`, { timeoutMs: 1_000 });
    await expect(get()).rejects.toBeInstanceOf(Error);
  });

  it('retries a read when a kept connection closes before the response, but never a purchase', async () => {
    const paths: unknown[] = [];
    const url = await serve((request, response) => {
      paths.push(request.url);
      const isSecond = used.has(request.socket);
      used.add(request.socket);
      if (isSecond) request.socket.resetAndDestroy();
      else response.end('{}');
    });
    const used = new WeakSet();
    const { get, buy } = newClient(url);
    expect(await get('/first')).toMatchObject({ status: 200 });
    // undici considers a connection busy until the turn after its response ends.
    await sleep(50);
    expect(await get('/again')).toMatchObject({ status: 200 });
    await sleep(50);
    await expect(buy()).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    expect(paths).toEqual(['/first', '/again', '/again', '/buy']);
  });

  describe('behind TLS', () => {
    let authority: TestAuthority;
    const trusted = getCACertificates('default');
    beforeAll(() => {
      authority = new TestAuthority();
      setDefaultCACertificates([...trusted, authority.certificate]);
    });
    afterAll(() => {
      setDefaultCACertificates(trusted);
      authority.remove();
    });

    async function serveTls(options: TlsProviderOptions = {}, identity = authority.issue()) {
      const upstream = await startTlsProvider(identity, options);
      closers.push(() => upstream.close());
      return upstream;
    }

    it('throws ProviderUnavailable when there is no TLS or no trusted certificate', async () => {
      const plain = await serve((_request, response) => void response.end('{}'));
      const stranger = await serveTls({}, authority.selfSigned());
      const another = await serveTls({}, authority.issue({ names: ['other.example'] }));
      for (const url of [plain.replace('http:', 'https:'), stranger.url, another.url])
        await expect(newClient(url).buy()).rejects.toBeInstanceOf(ProviderUnavailable);
      expect([stranger.taken, another.taken]).toEqual([[], []]);
    });

    it('throws ProviderUnavailable at once when OpenSSL refuses the options', async () => {
      const upstream = await serveTls();
      const connect = vi.spyOn(tls, 'connect').mockImplementation(() => {
        throw new Error('Failed to set ECDH curve');
      });
      closers.push(() => Promise.resolve(connect.mockRestore()));
      const client = newClient(upstream.url, { timeoutMs: 60_000 });
      await expect(client.buy()).rejects.toBeInstanceOf(ProviderUnavailable);
      expect(upstream.taken).toEqual([]);
    });

    it.each<[string, TlsProviderOptions]>([
      ['an undecryptable record, in TLS 1.2', { version: 'TLSv1.2', breakWith: FOREIGN_RECORD }],
      ['an undecryptable record, in TLS 1.3', { version: 'TLSv1.3', breakWith: FOREIGN_RECORD }],
      ['plain HTTP, in TLS 1.2', { version: 'TLSv1.2', breakWith: PLAIN_ANSWER }],
      ['plain HTTP, in TLS 1.3', { version: 'TLSv1.3', breakWith: PLAIN_ANSWER }],
      ['a request for our certificate, in TLS 1.3', { wantsClientCertificate: true }],
    ])('throws ProviderOutcomeUnknown when the response to a purchase is %s', async (_what, options) => {
      const upstream = await serveTls(options);
      await expect(newClient(upstream.url).buy()).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
      expect(upstream.taken).toEqual(options.breakWith ? ['"one"'] : []);
      expect(logLines.at(-1)!.code).toMatch(/^(ERR_SSL_|UND_ERR_SOCKET|ECONNRESET)/);
    });
  });

  it.each<[string, RequestListener, boolean]>([
    ['cut before the status', () => undefined, true],
    ['cut in the middle', (_q, r) => void r.writeHead(200, { 'content-length': 99 }).write('{'), true],
    ['no JSON', (_q, r) => void r.end('<html>'), false],
    ['ill-formed UTF-8', (_q, r) => void r.end(Buffer.from([0x22, 0xc3, 0x28, 0x22])), false],
    ['too large', (_q, r) => void r.end(`"${'x'.repeat(2_000)}"`), false],
    ['never coming', () => undefined, false],
  ])('throws ProviderOutcomeUnknown when the response is %s', async (what, listener, isCut) => {
    const url = await serve((request, response) => {
      listener(request, response);
      if (isCut) setTimeout(() => response.destroy(), 50);
    });
    const timeoutMs = what === 'never coming' ? 5_000 : 20_000;
    const { get } = newClient(url, { maxAnswerBytes: 1_000, timeoutMs });
    await expect(get()).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
  });

  it('makes no call while the circuit is open, and one when it is half open', async () => {
    let nowMs = 0;
    let calls = 0;
    let status = 503;
    const url = await serve((_request, response) => {
      calls++;
      response.writeHead(status).end('{}');
    });
    const { get } = newClient(url, { breaker: new CircuitBreaker({ nowMs: () => nowMs }) });
    for (let i = 0; i < 5; i++) expect(await get()).toMatchObject({ status: 503 });
    await expect(get()).rejects.toMatchObject({ name: 'ProviderUnavailable', retryAfterMs: 10_000 });
    expect(calls).toBe(5);
    nowMs += 10_000;
    status = 200;
    const [probe, other] = await Promise.allSettled([get(), get()]);
    expect(probe.status).toBe('fulfilled');
    expect(other).toMatchObject({ status: 'rejected', reason: { name: 'ProviderUnavailable' } });
    expect(calls).toBe(6);
    expect(await get()).toMatchObject({ status: 200 });
  });

  it('logs each call in one line, without headers and bodies', async () => {
    const url = await serve((_request, response) => void response.end('{"matchingId":"secret-thing"}'));
    await newClient(url).get('/things?_limit=1');
    expect(logLines).toHaveLength(1);
    expect(logLines[0]).toMatchObject({
      event: 'provider.call',
      provider: 'w',
      purpose: 'poll',

      method: 'GET',
      path: '/things?_limit=1',
      status: 200,
      latencyMs: expect.any(Number),
    });
    expect(JSON.stringify(logLines)).not.toMatch(/hush|secret-thing/);
  });

  it('records for operators how the last calls ended, the balance and the last sync', async () => {
    let status = 200;
    const url = await serve((_request, response) => void response.writeHead(status).end('{}'));
    // A separate name, because an unawaited write of an earlier test may still be pending.
    const { get } = newClient(url, { provider: 'kept' });
    const health = new ProviderHealthRepository(bed.dataSource.manager, logger);
    const row = async () => (await health.list()).find((each) => each.provider === 'kept');
    await get();
    await eventually('the success is kept', async () => (await row())?.state === 'ok');
    status = 503;
    await get();
    await eventually('the failure is kept', async () => (await row())?.state === 'failing');
    expect(await row()).toMatchObject({
      lastErrorCode: 'http_503',
      lastOkAt: expect.any(Date),
      balance: null,
    });
    health.recordBalance('kept', { micros: 9_000_000_000_000, currency: 'USD' });
    health.recordSync('kept');
    await eventually('both are kept', async () => (await row())?.balance && (await row())?.lastSyncAt);
    expect(await row()).toMatchObject({
      state: 'failing',
      balance: { micros: 9_000_000_000_000, currency: 'USD' },
      balanceAt: expect.any(Date),
    });
  });
});
