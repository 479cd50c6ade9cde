import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { ResolveAddresses } from '../../src/infra/network/resolve-addresses.js';
import type { AttemptPhases } from '../../src/webhooks/worker/attempt-result.js';
import type { WebhookSender } from '../../src/webhooks/worker/webhook-sender.js';
import { TestAuthority } from './sending/certificates.js';
import { connections, http, https, raw } from './sending/receivers.js';
import { afterThisTest, send, senderWith } from './sending/sender.js';

const NOTHING = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null };

/** Resolves to loopback after a delay. */
const slowNames =
  (ms: number): ResolveAddresses =>
  async () => {
    await sleep(ms);
    return [{ address: '127.0.0.1', family: 4 }];
  };

function expectBetween(value: number | null, least: number, most: number): void {
  expect(value).toBeGreaterThanOrEqual(least);
  expect(value).toBeLessThan(most);
}

interface PhaseBounds {
  readonly of: (phases: AttemptPhases) => number;
  readonly least: number;
  readonly most: number;
}

/** Delays of the receiver and the resolver in each phase, with a tolerance. */
const BOUNDS: readonly PhaseBounds[] = [
  { of: ({ dnsMs }) => dnsMs!, least: 148, most: 200 },
  { of: ({ connectMs }) => connectMs!, least: 0, most: 50 },
  { of: ({ tlsMs }) => tlsMs!, least: 0.1, most: 80 },
  { of: (its) => its.firstByteMs! - its.dnsMs! - its.connectMs! - its.tlsMs!, least: 95, most: 160 },
  { of: ({ firstByteMs, totalMs }) => totalMs - firstByteMs!, least: 140, most: 200 },
];

/** Bounds that no attempt met. A busy machine may distort some attempts, but not all of them. */
function missedBy(attempts: readonly AttemptPhases[]): readonly number[][] {
  const isMissed = ({ of, least, most }: PhaseBounds): boolean =>
    !attempts.map(of).some((value) => value >= least && value < most);
  return BOUNDS.filter(isMissed).map(({ of }) => attempts.map(of));
}

const MAX_ATTEMPTS = 30;

describe('the phase log of an attempt', () => {
  it('measures name, connection, TLS, first byte and total separately', async () => {
    const authority = new TestAuthority();
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, authority.certificate]);
    afterThisTest(() => {
      setDefaultCACertificates(before);
      authority.remove();
    });
    const identity = authority.issue({ names: ['partner.test'] });
    const port = await https(identity, (_request, response) => {
      setTimeout(() => response.write('a'), 100);
      setTimeout(() => response.end('b'), 250);
    });
    const attempts: AttemptPhases[] = [];
    const attempt = async (): Promise<WebhookSender> => {
      const sender = senderWith({ resolve: slowNames(150) });
      const result = await send(sender, `https://partner.test:${port}/`);
      expect(result).toMatchObject({ outcome: 'delivered', reusedConnection: false, responseBody: 'ab' });
      attempts.push(result.phases!);
      return sender;
    };
    const sender = await attempt();
    await sleep(20);
    const again = await send(sender, `https://partner.test:${port}/`);
    expect(again).toMatchObject({ outcome: 'delivered', reusedConnection: true });
    expect(again.phases).toMatchObject({ dnsMs: null, connectMs: null, tlsMs: null });
    expect(again.phases!.firstByteMs).toBeGreaterThan(95);
    while (missedBy(attempts).length > 0 && attempts.length < MAX_ATTEMPTS) await attempt();
    expect(missedBy(attempts)).toEqual([]);
  });

  it('has no DNS time for an IP address and no TLS time for plain HTTP, and includes an instant resolver', async () => {
    const url = await http((_request, response) => void response.end());
    const literal = (await send(senderWith(), url)).phases!;
    expect(literal).toMatchObject({ dnsMs: null, tlsMs: null });
    expectBetween(literal.connectMs, 0, 1_000);
    const known: ResolveAddresses = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
    const named = await send(senderWith({ resolve: known }), url.replace('127.0.0.1', 'partner.test'));
    expectBetween(named.phases!.dnsMs, 0, 1_000);
    expectBetween(named.phases!.connectMs, 0, 1_000);
  });

  it('shows how far a failed attempt got, and how long its last phase took', async () => {
    const refusedUrl = await send(senderWith({ allowPrivateTargets: false }), 'https://127.0.0.1/');
    expect(refusedUrl.phases).toMatchObject(NOTHING);

    const hanging = senderWith({ timeoutMs: 2_000, resolve: () => new Promise(() => undefined) });
    const inName = await send(hanging, 'http://partner.test/');
    expect(inName).toMatchObject({ error: 'timeout', phases: { ...NOTHING, dnsMs: expect.any(Number) } });
    expectBetween(inName.phases!.dnsMs, 1_900, 4_000);

    const failing: ResolveAddresses = () =>
      Promise.reject(Object.assign(new Error('x'), { code: 'ESERVFAIL' }));
    const noName = await send(senderWith({ resolve: failing }), 'http://partner.test/');
    expect(noName).toMatchObject({
      error: 'dns: ESERVFAIL',
      phases: { ...NOTHING, dnsMs: expect.any(Number) },
    });

    const noConnection = await send(senderWith({ resolve: slowNames(50) }), 'http://partner.test:1/');
    expect(noConnection.error).toBe('connect: ECONNREFUSED');
    const connected = { dnsMs: expect.any(Number), connectMs: expect.any(Number) };
    expect(noConnection.phases).toMatchObject({ ...NOTHING, ...connected });

    const port = await connections((socket) => void socket.resume());
    const inTls = await send(
      senderWith({ timeoutMs: 2_000, resolve: slowNames(50) }),
      `https://partner.test:${port}/`,
    );
    expect(inTls).toMatchObject({ error: 'timeout', phases: { ...connected, firstByteMs: null } });
    expectBetween(inTls.phases!.tlsMs, 1, 4_000);

    const half = await send(
      senderWith({ timeoutMs: 2_000 }),
      await raw((socket) => void socket.write('HTTP/1.1 2')),
    );
    expect(half).toMatchObject({ error: 'timeout', phases: { firstByteMs: expect.any(Number) } });
    expectBetween(half.phases!.firstByteMs, 0, 2_000);
    for (const { latencyMs, phases } of [inName, noName, noConnection, inTls, half]) {
      expect(phases!.totalMs).toBeCloseTo(latencyMs, 6);
    }
  });
});

describe('the latency', () => {
  it.each([0, 40, 120, 300])("equals the receiver's measurement within 20 ms: %i ms", async (thinkingMs) => {
    const measured: number[] = [];
    const url = await http((request, response) => {
      const startedAt = performance.now();
      request.resume().on('end', () => {
        setTimeout(() => {
          measured.push(performance.now() - startedAt);
          response.writeHead(200).end();
        }, thinkingMs);
      });
    });
    const sender = senderWith();
    await send(sender, url); // connects, and warms up the code
    await sleep(20);
    const differences: number[] = [];
    for (let i = 0; i < 10; i++) {
      const { latencyMs } = await send(sender, url);
      differences.push(latencyMs - measured.at(-1)!);
      await sleep(20);
    }
    // The receiver's time is part of the attempt. A busy machine may be late, but not every time.
    for (const difference of differences) expect(difference).toBeGreaterThan(-1);
    expect(Math.min(...differences)).toBeLessThan(20);
  });
});
