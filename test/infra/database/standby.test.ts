import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../../harness/index.js';
import { placeOrder } from '../../harness/order-steps.js';
import { StandbyPair } from './standby-pair.js';

let pair: StandbyPair;
let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  pair = await StandbyPair.create();
  service = await startTestService({ database: pair, env: { DATABASE_STANDBY_URL: pair.standbyUrl } });
  partner = await service.createPartner();
});
afterAll(async () => {
  await service.stop();
  await pair.drop();
});

/** How many lists were read from the standby, or from the primary instead. */
async function reads(outcome: 'read' | 'behind' | 'away'): Promise<number> {
  const metric = service.process.resources.metrics.getSingleMetric('standby_reads_total');
  const { values } = await metric!.get();
  return values.find(({ labels }) => labels['outcome'] === outcome)?.value ?? 0;
}

async function listedIds(): Promise<string[]> {
  const answer = await partner.sandbox.get('/v1/orders?limit=5');
  expect(answer.status, answer.text).toBe(200);
  return (answer.body.data as { id: string }[]).map(({ id }) => id);
}

/** Places an order and lists at once. */
async function placeAndList(): Promise<void> {
  const { id } = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
  expect((await listedIds())[0]).toBe(id);
}

describe('lists with DATABASE_STANDBY_URL', () => {
  it('are read from the standby, and always show the caller’s last write', async () => {
    for (let nth = 0; nth < 30; nth++) await placeAndList();
    expect(await reads('read')).toBeGreaterThan(0);
    const admin = await service.admin.get(`/internal/v1/partners/${partner.id}/orders?limit=100`);
    expect(admin.body.data).toHaveLength(30);
  });

  it('go on over many pages, from one server or the other', async () => {
    const seen = new Set<string>();
    for (let cursor = ''; ;) {
      const answer = await partner.sandbox.get(`/v1/orders?limit=7${cursor}`);
      for (const { id } of answer.body.data as { id: string }[]) seen.add(id);
      if (!answer.body.has_more) break;
      cursor = `&cursor=${answer.body.next_cursor as string}`;
    }
    expect(seen.size).toBe(30);
  });

  it('are read from the primary while the standby lags', async () => {
    await pair.onStandby('SELECT pg_wal_replay_pause()');
    const before = await reads('behind');
    await placeAndList();
    expect(await reads('behind')).toBeGreaterThan(before);
    await pair.onStandby('SELECT pg_wal_replay_resume()');
    const read = await reads('read');
    await eventually('it is read again', async () => {
      await placeAndList();
      return (await reads('read')) > read;
    });
  });

  it('are read from the primary while the standby is away, and from the standby when it is back', async () => {
    await pair.stopStandby();
    await placeAndList();
    await placeAndList();
    expect(await reads('away')).toBeGreaterThan(0);
    await pair.startStandby();
    const read = await reads('read');
    await eventually('it is read again', async () => {
      await placeAndList();
      return (await reads('read')) > read;
    });
  });

  it('do not keep the service from starting without a standby', async () => {
    const nowhere = 'postgres://nobody:nothing@127.0.0.1:9/esim';
    const other = await startTestService({
      role: 'api',
      database: pair,
      env: { DATABASE_STANDBY_URL: nowhere },
    });
    const answer = await other.partnerApi(partner.sandboxKey).get('/v1/orders?limit=1');
    expect([answer.status, answer.body.data]).toEqual([200, expect.arrayContaining([expect.anything()])]);
    await other.stop();
  });
});
