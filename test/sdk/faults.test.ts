import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EsimClient, EsimApiError, EsimConnectionError, isApiError } from '../../sdk/src/index.js';
import { freePort } from '../harness/free-port.js';
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

describe('a client behind a network that breaks', () => {
  it(`places exactly ${PLACEMENTS} orders in ${PLACEMENTS} placements, whatever happens to calls and answers`, async () => {
    // Two of three tries meet a fault, in turns: every kind comes, and no placement needs more tries than it has.
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

  it('gives up a drip that outlasts the time-out, and says that the call may have arrived', async () => {
    const proxy = await startFaultProxy(service.process.api!.url, () => 'slow drip');
    const esim = clientOf(proxy.url, { timeoutMs: 300, maxTries: 1 });
    const error = await esim.orders.place({ package_id: 'pkg_fr_1gb_7d' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EsimConnectionError);
    expect(error).toMatchObject({ mayHaveArrived: true, call: { tries: 1 } });
    const { idempotencyKey } = (error as EsimConnectionError).call;
    // With the key of the error, the call is made again and is the same.
    const again = await clientOf(service.process.api!.url).orders.place(
      { package_id: 'pkg_fr_1gb_7d' },
      { idempotencyKey: idempotencyKey! },
    );
    expect((await clientOf(service.process.api!.url).orders.get(again.id)).id).toBe(again.id);
    await proxy.close();
  });

  it('waits as long as Retry-After says, and no longer than its deadline', async () => {
    let fault: Fault = '429 with Retry-After';
    const late = await startFaultProxy(service.process.api!.url, () => fault, 600);
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

  it('does not try again what the service refuses for good', async () => {
    const answers: number[] = [];
    const esim = clientOf(service.process.api!.url, {
      onAnswer: ({ status }: { status: number }) => answers.push(status),
    });
    const error = await esim.orders.place({ package_id: 'pkg_nobody' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EsimApiError);
    expect(error).toMatchObject({ code: 'not_found', status: 404, retryable: false });
    expect(answers).toEqual([404]);
  });

  it('tries what is left of a deadline that is shorter than a time-out, in whole milliseconds', async () => {
    const esim = clientOf(service.process.api!.url, { timeoutMs: 60_000, deadlineMs: 40_000 });
    expect((await esim.me()).partner_id).toBe(partner.id);
  });

  it('says that nothing has left when nobody is there', async () => {
    const error = await clientOf(`http://127.0.0.1:${await freePort()}`, { maxTries: 1 })
      .me()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'EsimConnectionError', mayHaveArrived: false });
  });

  it('ends a call, its pauses too, when its signal aborts', async () => {
    const proxy = await startFaultProxy(service.process.api!.url, () => '503');
    const stop = new AbortController();
    const esim = clientOf(proxy.url, { onAnswer: () => stop.abort(new Error('stopped by the test')) });
    await expect(esim.me({ signal: stop.signal })).rejects.toThrow('stopped by the test');
    await proxy.close();
  });
});
