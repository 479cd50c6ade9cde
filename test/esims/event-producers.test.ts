import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { EsimDevice } from '../harness/esim-device.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { issueEsim, type Json, readFeed } from '../harness/order-steps.js';
import {
  closeReceivers,
  listDeliveries,
  receiverThatAnswers,
  registerEndpoint,
} from '../webhooks/support.js';

let service: TestService;
let partner: TestPartner;
let device: EsimDevice;

beforeAll(async () => {
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '200', RATE_LIMIT_PER_MINUTE: '6000' } });
  partner = await service.createPartner();
  device = new EsimDevice(partner.sandbox);
});
afterAll(() => service.stop());
afterEach(closeReceivers);

const ofType = async (type: string): Promise<Json[]> =>
  (await readFeed(partner.sandbox)).filter((event) => event['type'] === type);

async function endpointWith(fields: object): Promise<{ percents: () => Promise<number[]>; path: string }> {
  const receiver = await receiverThatAnswers(200);
  const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url, ...fields });
  return {
    path: endpoint.path,
    percents: async () => {
      const deliveries = await listDeliveries(service, endpoint, '&event_type=esim.usage.level');
      const events = await ofType('esim.usage.level');
      return deliveries
        .map(({ event_id }) => events.find(({ id }) => id === event_id)!['data'].percent as number)
        .sort((a, b) => a - b);
    },
  };
}

describe('esim.profile.changed', () => {
  it('reports the activation of a Sandbox eSIM once, with both states and the version', async () => {
    const id = await device.activeEsim();
    const esim = await device.read(id);
    const [event, ...others] = (await device.events(id)).filter(
      ({ type }) => type === 'esim.profile.changed',
    );
    expect(others).toEqual([]);
    expect(event!['data']).toEqual({
      ...(await device.identity(id)),
      profile_status: 'enabled',
      previous: 'released',
      version: esim['version'],
    });
  });
});

describe('usage_levels of an endpoint', () => {
  it('receive an event per level, once per data cycle, and no other level', async () => {
    const every = await endpointWith({ event_types: ['*'], usage_levels: [90, 25] });
    const some = await endpointWith({ event_types: ['esim.usage.level'], usage_levels: [90, 100] });
    const none = await endpointWith({ event_types: ['*'] });
    const byDefault = await endpointWith({ usage_levels: [25] });
    expect((await service.admin.get(every.path)).body.data.usage_levels).toEqual([25, 90]);
    const id = await device.activeEsim();
    for (const percent of [20, 20, 55]) await device.played(id, 'consume', { percent });
    const events = (await ofType('esim.usage.level')).map(({ data }) => data as Json);
    expect(events.map(({ percent }) => percent as number)).toEqual([25, 90]);
    expect(events[0]).toMatchObject({ esim_id: id, used_bytes: 400_000_000, total_bytes: 1_000_000_000 });
    expect(await every.percents()).toEqual([25, 90]);
    expect(await some.percents()).toEqual([90]);
    expect(await none.percents()).toEqual([]);
    expect(await byDefault.percents()).toEqual([]);
    for (const { path } of [every, some, none, byDefault])
      expect((await service.admin.call('DELETE', path)).status).toBe(200);
    await device.played(id, 'consume', { percent: 5 });
    expect(await ofType('esim.usage.level'), 'nobody names 100 any more').toHaveLength(2);
  });

  it.each([[[]], [[0]], [[101]], [[1.5]], [['50']], [[50, 50]], [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]], [50]])(
    'refuse %j',
    async (usage_levels) => {
      const path = `/internal/v1/partners/${partner.id}/webhook-endpoints`;
      const body = { mode: 'sandbox', url: 'https://partner.example/', usage_levels };
      const answer = await service.admin.post(path, body);
      expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    },
  );
});

describe('order.canceled', () => {
  it('reports a cancellation once, with the order’s version and the money that came back', async () => {
    const esimId = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
    const { order_id: id } = await device.read(esimId);
    expect((await partner.sandbox.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    const order = await eventually('the order is canceled', async () => {
      const { data } = (await partner.sandbox.get(`/v1/orders/${id}`)).body;
      return data.status === 'canceled' ? (data as Json) : null;
    });
    const events = (await ofType('order.canceled')).filter(({ data }) => data.order_id === id);
    expect(events.map(({ data }) => data as Json)).toEqual([
      {
        order_id: id,
        reference: null,
        package_id: 'pkg_fr_1gb_7d',
        refunded: order['refunded'],
        version: order['version'],
      },
    ]);
  });
});

describe('esim.expiring', () => {
  it('reports each level once, however many workers look for it', async () => {
    const others = await Promise.all(
      [1, 2].map(() =>
        startTestService({ role: 'worker', database: service.database, env: { SWEEP_INTERVAL_MS: '50' } }),
      ),
    );
    try {
      const ids: string[] = [];
      for (let n = 0; n < 12; n++) ids.push(await device.activeEsim());
      const expiring = async (): Promise<Json[]> =>
        (await ofType('esim.expiring')).filter(({ data }) => ids.includes(data.esim_id as string));
      for (const [level, hours] of [
        [72, 71.5],
        [24, 23.5],
      ]) {
        // The time passes, for the database.
        await service.database.pool.query(
          `UPDATE esims SET expires_at = now() + $2 * interval '1 hour', expiry_warning_at = now() - interval '30 minutes'
           WHERE id = ANY ($1)`,
          [ids, hours],
        );
        const events = await eventually(`level ${level}`, async () => {
          const found = (await expiring()).filter(({ data }) => data.hours_left === level);
          return found.length >= ids.length ? found : null;
        });
        expect(new Set(events.map(({ data }) => data.esim_id as string)).size).toBe(ids.length);
        const { version, expires_at } = await device.read(ids[0]!);
        expect(events.find(({ data }) => data.esim_id === ids[0])!['data']).toEqual({
          ...(await device.identity(ids[0]!)),
          hours_left: level,
          expires_at,
          version,
        });
      }
      const { rows } = await service.database.pool.query(
        'SELECT 1 FROM esims WHERE id = ANY ($1) AND expiry_warning_at IS NOT NULL',
        [ids],
      );
      expect(rows, 'no further level is due').toEqual([]);
      expect(await expiring()).toHaveLength(2 * ids.length);
    } finally {
      for (const other of others) await other.stop();
    }
  });
});
