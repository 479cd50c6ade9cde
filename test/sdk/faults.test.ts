import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CallFacts,
  EsimClient,
  EsimApiError,
  EsimConnectionError,
  isApiError,
} from '../../sdk/src/index.js';
import { freePort } from '../../chaos/free-port.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { size } from '../harness/size.js';
import { type Fault, FAULTS, startFaultProxy } from './fault-proxy.js';

const PLACEMENTS = size('SDK_PLACEMENTS', 40, 1_000);
const AT_ONCE = 16;

let service: TestService;
let partner: TestPartner;
beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
});
afterAll(() => service.stop());

const clientOf = (baseUrl: string, more: object = {}): EsimClient =>
  new EsimClient({ apiKey: partner.sandboxKey, baseUrl, ...more });

describe('a client behind a faulty network', () => {
  it(`places exactly ${PLACEMENTS} orders for ${PLACEMENTS} placements, whatever happens to calls and responses`, async () => {
    // Two of three attempts hit a fault, in rotation, so every kind occurs and no placement runs out of attempts.
    let call = 0;
    const proxy = await startFaultProxy(service.process.api!.url, () => {
      const nth = call++;
      return nth % 3 === 0 ? 'none' : FAULTS[1 + (nth % (FAULTS.length - 1))]!;
    });
    const esim = clientOf(proxy.url, { timeoutMs: 20_000, deadlineMs: 300_000, maxTries: 40 });
    const ids: string[] = [];
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < PLACEMENTS) {
        const reference = `fault-${next++}`;
        ids.push((await esim.orders.place({ package_id: 'pkg_fr_1gb_7d', reference })).id);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    await proxy.close();
    const { rows } = await service.database.pool.query<{ id: string }>(
      `SELECT id FROM orders WHERE partner_id = $1 AND reference LIKE 'fault-%'`,
      [partner.id],
    );
    expect(new Set(ids).size).toBe(PLACEMENTS);
    expect(rows.map(({ id }) => id).sort()).toEqual([...ids].sort());
    console.log(`faults: ${JSON.stringify(proxy.counts)}`);
    for (const fault of FAULTS) expect(proxy.counts[fault], fault).toBeGreaterThan(0);
  }, 300_000);

  it('aborts a slow drip at the timeout, and reports that the call may have arrived', async () => {
    const proxy = await startFaultProxy(service.process.api!.url, () => 'slow drip');
    const esim = clientOf(proxy.url, { timeoutMs: 300, maxTries: 1 });
    const error = await esim.orders.place({ package_id: 'pkg_fr_1gb_7d' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EsimConnectionError);
    expect(error).toMatchObject({ mayHaveArrived: true, call: { tries: 1 } });
    const { idempotencyKey } = (error as EsimConnectionError).call;
    // With the key from the error, the call can be repeated safely.
    const again = await clientOf(service.process.api!.url).orders.place(
      { package_id: 'pkg_fr_1gb_7d' },
      { idempotencyKey: idempotencyKey! },
    );
    expect((await clientOf(service.process.api!.url).orders.get(again.id)).id).toBe(again.id);
    await proxy.close();
  });

  it('waits as long as Retry-After says, and no longer than its deadline', async () => {
    let fault: Fault = '429 with Retry-After';
    const late = await startFaultProxy(service.process.api!.url, () => fault, { retryAfterSeconds: 600 });
    const startedAt = performance.now();
    const esim = clientOf(late.url);
    const refused = await esim.me().catch((thrown: unknown) => thrown);
    expect(isApiError(refused, 'rate_limited')).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(50_000);
    await late.close();
    const proxy = await startFaultProxy(service.process.api!.url, () => fault);
    const patient = clientOf(proxy.url, { onAnswer: () => (fault = 'none') });
    const from = performance.now();
    expect((await patient.me()).partner_id).toBe(partner.id);
    expect(performance.now() - from).toBeGreaterThan(990);
    await proxy.close();
  });

  it('does not retry permanent refusals', async () => {
    const answers: number[] = [];
    const esim = clientOf(service.process.api!.url, {
      onAnswer: ({ status }: { status: number }) => answers.push(status),
    });
    const error = await esim.orders.place({ package_id: 'pkg_nobody' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EsimApiError);
    expect(error).toMatchObject({ code: 'not_found', status: 404, retryable: false });
    expect(answers).toEqual([404]);
  });

  it('limits an attempt to the rest of the deadline, in whole milliseconds', async () => {
    const esim = clientOf(service.process.api!.url, { timeoutMs: 60_000, deadlineMs: 40_000 });
    expect((await esim.me()).partner_id).toBe(partner.id);
  });

  it('reports that nothing was sent when the connection is refused', async () => {
    const error = await clientOf(`http://127.0.0.1:${await freePort()}`, { maxTries: 1 })
      .me()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'EsimConnectionError', mayHaveArrived: false });
  });

  it('reports that an order may have been placed when a response was lost and later connections failed', async () => {
    const proxy = await startFaultProxy(service.process.api!.url, () => 'answer cut after the commit');
    // Not the proxy's own port, which another server may get once it is closed.
    const nobody = `http://127.0.0.1:${await freePort()}`;
    let tries = 0;
    const esim = clientOf(proxy.url, {
      maxTries: 3,
      fetch: (url: string, init: RequestInit) =>
        fetch(++tries === 1 ? url : url.replace(proxy.url, nobody), init),
    });
    const body = { package_id: 'pkg_fr_1gb_7d', reference: 'lost-1' };
    const error = await esim.orders.place(body).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EsimConnectionError);
    const lost = error as EsimConnectionError;
    expect((lost.cause as Error).cause).toMatchObject({ code: 'ECONNREFUSED' });
    expect(lost).toMatchObject({ mayHaveArrived: true, call: { tries: 3, mayHaveArrived: true } });
    await proxy.close();
    const again = await clientOf(service.process.api!.url).orders.place(body, {
      idempotencyKey: lost.call.idempotencyKey!,
    });
    expect((await clientOf(service.process.api!.url).orders.list({ reference: 'lost-1' })).data).toEqual([
      expect.objectContaining({ id: again.id }),
    ]);
  });

  it.each<[Fault[], object]>([
    [['answer cut after the commit', '429 with Retry-After'], { code: 'rate_limited', mayHaveArrived: true }],
    [['answer cut after the commit', '503'], { code: 'service_unavailable', mayHaveArrived: true }],
    [['503', '429 with Retry-After'], { code: 'rate_limited', mayHaveArrived: true }],
    [['429 with Retry-After', '429 with Retry-After'], { code: 'rate_limited', mayHaveArrived: false }],
  ])('reports after %j whether the order may have been placed', async (faults, told) => {
    const turns = [...faults];
    const proxy = await startFaultProxy(service.process.api!.url, () => turns.shift()!);
    const esim = clientOf(proxy.url, { maxTries: 2 });
    const error = await esim.orders.place({ package_id: 'pkg_fr_1gb_7d' }).catch((thrown: unknown) => thrown);
    await proxy.close();
    expect(error).toBeInstanceOf(EsimApiError);
    const { code, call } = error as EsimApiError;
    expect({ code, mayHaveArrived: call.mayHaveArrived }).toEqual(told);
  });

  it('knows from the refusal stored under the key that the lost attempt did nothing', async () => {
    const turns: Fault[] = ['answer cut after the commit', 'none'];
    const proxy = await startFaultProxy(service.process.api!.url, () => turns.shift()!);
    const error = await clientOf(proxy.url)
      .orders.place({ package_id: 'pkg_nobody' })
      .catch((thrown: unknown) => thrown);
    await proxy.close();
    expect(error).toMatchObject({ code: 'not_found', call: { tries: 2, mayHaveArrived: false } });
  });

  it('throws the reason of an abort after the commit, and reports the key before each attempt', async () => {
    const stop = new AbortController();
    const reason = new Error('the traveler went away');
    const target = service.process.api!.url;
    const proxy = await startFaultProxy(target, () => 'answer cut after the commit');
    const keys: (string | null)[] = [];
    const esim = clientOf(proxy.url, {
      onTry: ({ idempotencyKey, tries }: CallFacts) => {
        keys.push(idempotencyKey);
        if (tries === 2) stop.abort(reason);
      },
    });
    const body = { package_id: 'pkg_fr_1gb_7d', reference: 'aborted-1' };
    const thrown = await esim.orders.place(body, { signal: stop.signal }).catch((caught: unknown) => caught);
    await proxy.close();
    expect(thrown).toBe(reason);
    expect(keys).toEqual([expect.any(String), keys[0]]);
    const placed = await clientOf(target).orders.place(body, { idempotencyKey: keys[0]! });
    expect((await clientOf(target).orders.list({ reference: 'aborted-1' })).data).toEqual([
      expect.objectContaining({ id: placed.id }),
    ]);
  });

  it('ends a call and its pauses when its signal aborts', async () => {
    const proxy = await startFaultProxy(service.process.api!.url, () => '503');
    const stop = new AbortController();
    const esim = clientOf(proxy.url, { onAnswer: () => stop.abort(new Error('stopped by the test')) });
    await expect(esim.me({ signal: stop.signal })).rejects.toThrow('stopped by the test');
    await proxy.close();
  });
});

describe('the message of an API error', () => {
  const messageOf = async (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => expect.unreachable('it was refused'),
      (error: unknown) => (error as Error).message,
    );

  it("contains the status, the code, the service's message, the call and the request id", async () => {
    const esim = clientOf(service.process.api!.url);
    expect(await messageOf(esim.orders.place({ package_id: 'pkg_nobody' }))).toMatch(
      /^404 not_found: [A-Z].+\. \(POST http:\S+\/v1\/orders with a Sandbox key, request req_\w+\)$/,
    );
  });

  it('names each invalid field and the reason', async () => {
    const esim = clientOf(service.process.api!.url);
    const order = { package_id: 'pkg_fr_1gb_7d', quantity: 0, reference: '' };
    const message = await messageOf(esim.orders.place(order));
    expect(message).toMatch(/^400 validation_failed: 2 fields are invalid\. /);
    expect(message).toMatch(/\/quantity: \S/);
    expect(message).toMatch(/\/reference: \S/);
  });
});
