import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestService } from '../../harness/index.js';
import { placeOrder } from '../../harness/order-steps.js';
import { StandbyPair } from './standby-pair.js';

let pair: StandbyPair;
let service: TestService;

beforeAll(async () => {
  pair = await StandbyPair.create();
  service = await startTestService({ database: pair, env: { DATABASE_STANDBY_URL: pair.standbyUrl } });
});
afterAll(async () => {
  await service.stop();
  await pair.drop();
});

/** How many lists were read from the standby, or from the primary instead. */
async function reads(outcome: 'read' | 'behind' | 'away', by = service): Promise<number> {
  const metric = by.process.resources.metrics.getSingleMetric('standby_reads_total');
  const { values } = await metric!.get();
  return values.find(({ labels }) => labels['outcome'] === outcome)?.value ?? 0;
}

/** How many lists looked for the standby first; whether it had the caller's last write in time depends on the machine. */
async function askedFor(by: TestService): Promise<number> {
  const counts = [await reads('read', by), await reads('behind', by), await reads('away', by)];
  return counts.reduce((sum, count) => sum + count, 0);
}

async function listedIds(): Promise<string[]> {
  const answer = await service.admin.get('/internal/v1/partners?limit=5');
  expect(answer.status, answer.text).toBe(200);
  return (answer.body.data as { id: string }[]).map(({ id }) => id);
}

/** Makes a partner and lists at once. */
async function createAndList(): Promise<void> {
  const { id } = await service.createPartner();
  expect((await listedIds())[0]).toBe(id);
}

describe('lists with DATABASE_STANDBY_URL', () => {
  it('are read from the standby, and always show the caller’s last write', async () => {
    for (let nth = 0; nth < 30; nth++) await createAndList();
    // On a busy machine it may have been behind each time.
    await eventually('it was read', async () => {
      await createAndList();
      return (await reads('read')) > 0;
    });
  });

  it('are read from the primary where they are one snapshot with something else', async () => {
    const { sandboxKey } = await service.createPartner();
    // Without a worker: its sweeps read lists, too.
    const api = await startTestService({
      role: 'api',
      database: pair,
      env: { DATABASE_STANDBY_URL: pair.standbyUrl },
    });
    const sandbox = api.partnerApi(sandboxKey);
    const { id } = await placeOrder(sandbox, { package_id: 'pkg_fr_1gb_7d' });
    const listed = await Promise.all(Array.from({ length: 40 }, () => sandbox.get('/v1/orders?limit=1')));
    for (const { status, body } of listed.filter((answer) => answer.status !== 429))
      expect([status, body.data[0].id]).toEqual([200, id]);
    expect(await askedFor(api)).toBe(0);
    const esims = await sandbox.get('/v1/esims?limit=1');
    expect([esims.status, await askedFor(api)]).toEqual([200, 1]);
    await api.stop();
  });

  it('go on over many pages, from one server or the other', async () => {
    const seen = new Set<string>();
    for (let cursor = ''; ;) {
      const answer = await service.admin.get(`/internal/v1/partners?limit=7${cursor}`);
      for (const { id } of answer.body.data as { id: string }[]) seen.add(id);
      if (!answer.body.has_more) break;
      cursor = `&cursor=${answer.body.next_cursor as string}`;
    }
    expect(seen.size).toBeGreaterThan(30);
  });

  it('are read from the primary while the standby lags', async () => {
    await pair.onStandby('SELECT pg_wal_replay_pause()');
    const before = await reads('behind');
    await createAndList();
    expect(await reads('behind')).toBeGreaterThan(before);
    await pair.onStandby('SELECT pg_wal_replay_resume()');
    const read = await reads('read');
    await eventually('it is read again', async () => {
      await createAndList();
      return (await reads('read')) > read;
    });
  });

  it('are read from the primary while the standby is away, and from the standby when it is back', async () => {
    await pair.stopStandby();
    await createAndList();
    await createAndList();
    expect(await reads('away')).toBeGreaterThan(0);
    await pair.startStandby();
    const read = await reads('read');
    await eventually('it is read again', async () => {
      await createAndList();
      return (await reads('read')) > read;
    });
  });

  it('do not keep the service from starting without a standby', async () => {
    const nowhere = 'postgres://nobody:nothing@127.0.0.1:9/esim';
    const env = { DATABASE_STANDBY_URL: nowhere };
    const other = await startTestService({ role: 'admin', database: pair, env });
    const answer = await other.admin.get('/internal/v1/partners?limit=1');
    expect([answer.status, answer.body.data]).toEqual([200, [expect.anything()]]);
    await other.stop();
  });
});
