import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EsimClient } from '../../sdk/src/index.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';

let service: TestService;
let partner: TestPartner;
let esim: EsimClient;
let calls: string[];
beforeAll(async () => {
  service = await startTestService();
});
beforeEach(async () => {
  partner = await service.createPartner();
  calls = [];
  esim = new EsimClient({
    apiKey: partner.sandboxKey,
    baseUrl: `${service.process.api!.url}/v1/`,
    onAnswer: ({ path }) => calls.push(path),
  });
});
afterAll(() => service.stop());

async function issuedEsim(): Promise<string> {
  const placed = await esim.orders.place({ package_id: 'pkg_fr_1gb_7d' });
  return (await esim.orders.waitFor(placed.id)).esims[0]!.esim_id;
}

describe('an order', () => {
  it('can be placed, awaited through events, listed page by page, and canceled', async () => {
    expect(esim.mode).toBe('sandbox');
    const placed = await esim.orders.place({ package_id: 'pkg_fr_1gb_7d', reference: 'sdk-1' });
    calls.length = 0;
    const issued = await esim.orders.waitFor(placed.id);
    expect(issued).toMatchObject({ status: 'issued', version: 3 });
    // It does not poll every second: a read, a wait, a read, and one more if the wait began too early.
    expect(calls.length).toBeLessThanOrEqual(5);
    await esim.orders.place({ package_id: 'pkg_fr_1gb_7d', reference: 'sdk-2' });
    const references: (string | null)[] = [];
    for await (const order of esim.orders.iterate({ limit: 1 })) references.push(order.reference);
    expect(references).toEqual(['sdk-2', 'sdk-1']);
    const page = await esim.orders.list({ limit: 1 });
    expect(page).toMatchObject({ hasMore: true, data: [{ reference: 'sdk-2' }] });
    await esim.orders.cancel(placed.id);
    expect((await esim.orders.waitFor(placed.id)).status).toBe('canceled');
  });

  it('has a rule that places it automatically, until the rule is deleted', async () => {
    const esim_id = await issuedEsim();
    const [fitting] = (await esim.esims.topupPackages(esim_id)).data;
    const { id: package_id, price: max_price } = fitting!;
    const rule = await esim.esims.setAutoTopup(esim_id, {
      at_percent: 80,
      package_id,
      max_times: 1,
      max_price,
    });
    expect(rule).toMatchObject({ status: 'active', times_used: 0 });
    expect(await esim.esims.autoTopup(esim_id)).toEqual(rule);
    await esim.esims.deleteAutoTopup(esim_id);
    await expect(esim.esims.autoTopup(esim_id)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('has install links, whose address only their creation returns', async () => {
    const esim_id = await issuedEsim();
    const { url, access_code, ...link } = await esim.esims.createInstallLink(esim_id, { locale: 'pl' });
    expect(url).toMatch(/\/i\/[\w-]{43}$/);
    expect(access_code).toBeNull();
    expect((await esim.esims.installLinks(esim_id)).data).toEqual([link]);
    expect(await esim.esims.installLink(esim_id, link.id)).toEqual(link);
    await esim.esims.revokeInstallLink(esim_id, link.id);
    await expect(esim.esims.installLink(esim_id, link.id)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('is returned unfinished on timeout, and waiting throws the reason of an abort', async () => {
    const { id } = await esim.orders.place({ package_id: 'pkg_test_slow' });
    const late = await esim.orders.waitFor(id, { timeoutMs: 1_500 });
    expect(['pending', 'processing']).toContain(late.status);
    const stopped = esim.orders.waitFor(id, { signal: AbortSignal.timeout(500) });
    await expect(stopped).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

describe('a top-up', () => {
  it('can be placed and awaited through events until it completes or fails', async () => {
    const esim_id = await issuedEsim();
    const [fitting] = (await esim.esims.topupPackages(esim_id)).data;
    const placed = await esim.topups.place({ esim_id, package_id: fitting!.id });
    calls.length = 0;
    expect(await esim.topups.waitFor(placed.id)).toMatchObject({ id: placed.id, status: 'completed' });
    // It does not poll every second: a read, a wait, a read, and one more if the wait began too early.
    expect(calls.length).toBeLessThanOrEqual(5);
    const failing = await esim.topups.place({ esim_id, package_id: 'pkg_test_topup_fail' });
    const failed = await esim.topups.waitFor(failing.id);
    expect(failed).toMatchObject({ status: 'failed', failure: { code: expect.any(String) } });
  });

  it('brings a plan to the eSIM, in a page that says whether plans are pooled', async () => {
    const esim_id = await issuedEsim();
    const { id } = await esim.topups.place({ esim_id, package_id: 'pkg_test_topup_queued' });
    await esim.topups.waitFor(id);
    const { pooled, data } = await esim.esims.plans(esim_id);
    expect(pooled).toBe(false);
    expect(data).toMatchObject([{ source: 'order' }, { topup_id: id, status: 'queued' }]);
    const all = [];
    for await (const plan of esim.esims.plans(esim_id)) all.push(plan.id);
    expect(all).toEqual(data.map((plan) => plan.id));
  });

  it('is returned unfinished on timeout, and waiting throws the reason of an abort', async () => {
    const esim_id = await issuedEsim();
    const { id } = await esim.topups.place({ esim_id, package_id: 'pkg_test_topup_fail' });
    calls.length = 0;
    expect(await esim.topups.waitFor(id, { timeoutMs: 0 })).toMatchObject({ id });
    expect(calls).toEqual([`/v1/topups/${id}`]);
    const gone = new Error('the traveler went away');
    const stopped = esim.topups.waitFor(id, { signal: AbortSignal.abort(gone) });
    await expect(stopped).rejects.toBe(gone);
  });
});
