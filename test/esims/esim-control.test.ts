import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  eventually,
  type HttpClient,
  startTestService,
  type TestService,
} from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { issueEsim, issueEsims, type Json, orderEnded } from '../harness/order-steps.js';

const ONE_GB = 'pkg_fr_1gb_7d';

let service: TestService;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '100' } });
  api = (await service.createPartner()).sandbox;
  device = new EsimDevice(api);
});

afterAll(() => service.stop());

function patchEsim(id: string, body: object, client = api): Promise<ApiAnswer> {
  return client.call('PATCH', `/v1/esims/${id}`, { body });
}

/** Requests an action that must be accepted, and returns the eSIM as accepted. */
async function request(id: string, action: string, body: object = {}): Promise<Json> {
  const answer = await api.post(`/v1/esims/${id}/${action}`, body);
  expect(answer.status, answer.text).toBe(202);
  expect(answer.headers.get('location')).toBe(`/v1/esims/${id}`);
  return answer.body.data as Json;
}

/** Waits until no action is pending. */
function settled(id: string): Promise<Json> {
  return eventually(`eSIM ${id} has no pending action`, async () => {
    const esim = await device.read(id);
    return esim['pending_action'] === null ? esim : null;
  });
}

async function eventsOf(id: string, ...types: string[]): Promise<Json[]> {
  return (await device.events(id)).filter((event) => types.includes(event['type'] as string));
}

describe('label and metadata', () => {
  it('changes the fields that are sent, keeps the others, and clears with null', async () => {
    const id = await issueEsim(api, ONE_GB);
    expect(await device.read(id)).toMatchObject({ label: null, metadata: {} });
    const patch = async (body: object) => {
      const answer = await patchEsim(id, body);
      expect(answer.status, answer.text).toBe(200);
      return answer.body.data as Json;
    };
    const first = await patch({ label: 'Lyon, été 2026', metadata: { traveler: 'A-17' } });
    expect(first).toMatchObject({ label: 'Lyon, été 2026', metadata: { traveler: 'A-17' } });
    expect(await patch({ metadata: { seat: '4C' } })).toMatchObject({
      label: 'Lyon, été 2026',
      metadata: { seat: '4C' },
      version: first['version'] + 1,
    });
    expect((await patch({})).version).toBe(first['version'] + 1);
    expect(await patch({ label: null, metadata: null })).toMatchObject({ label: null, metadata: {} });
  });

  it('filters the list by the label', async () => {
    const [a, b] = await issueEsims(api, ONE_GB, 2);
    const label = `trip-${a}`;
    for (const id of [a, b]) await patchEsim(id!, { label });
    const listed = (await api.get(`/v1/esims?label=${label}`)).body.data as Json[];
    expect(listed.map(({ id }) => id as string).sort()).toEqual([a, b].sort());
    expect((await api.get('/v1/esims?label=unknown')).body.data).toEqual([]);
  });

  it('refuses a label of several lines, and the eSIM of another partner', async () => {
    const id = await issueEsim(api, ONE_GB);
    expect(invalidFields(await patchEsim(id, { label: 'a\nb' }))).toEqual(['/label']);
    expect(invalidFields(await patchEsim(id, { label: 'x'.repeat(65) }))).toEqual(['/label']);
    const other = (await service.createPartner()).sandbox;
    expectProblem(await patchEsim(id, { label: 'mine' }, other), 404, 'not_found');
    expectProblem(await other.post(`/v1/esims/${id}/suspend`, {}), 404, 'not_found');
  });
});

describe('suspend, resume and revoke', () => {
  it('suspends and resumes, with one event each that has the reason', async () => {
    const id = await device.activeEsim();
    const asked = await request(id, 'suspend', { reason: 'Phone reported stolen' });
    expect(asked).toMatchObject({ status: 'active', pending_action: 'suspend', actions: [] });
    expect(await settled(id)).toMatchObject({
      status: 'suspended',
      actions: ['resume', 'revoke'],
      action_failure: null,
    });
    expectProblem(await device.play(id, 'consume', { bytes: 1 }), 409, 'esim_not_ready');
    await request(id, 'resume');
    const resumed = await settled(id);
    expect(resumed).toMatchObject({ status: 'active', actions: ['suspend', 'revoke'] });
    const [suspension, resumption, ...more] = await eventsOf(id, 'esim.suspended', 'esim.resumed');
    expect(more).toEqual([]);
    const identity = await device.identity(id);
    expect(suspension!['data']).toEqual({
      ...identity,
      reason: 'Phone reported stolen',
      version: expect.any(Number),
    });
    expect(resumption!['data']).toEqual({ ...identity, reason: null, version: resumed['version'] });
  });

  it('resumes an unused eSIM as issued, and a spent one as depleted', async () => {
    const unused = await issueEsim(api, ONE_GB);
    const spent = await device.activeEsim();
    await device.played(spent, 'consume', { percent: 100 });
    for (const id of [unused, spent]) await request(id, 'suspend');
    for (const id of [unused, spent]) await settled(id);
    for (const id of [unused, spent]) await request(id, 'resume');
    expect(await settled(unused)).toMatchObject({ status: 'issued' });
    expect(await settled(spent)).toMatchObject({ status: 'depleted' });
  });

  it('revokes for ever and refunds nothing', async () => {
    const id = await device.activeEsim();
    await request(id, 'revoke', { reason: 'Fraud' });
    expect(await settled(id)).toMatchObject({ status: 'canceled', actions: [], cancelable_until: null });
    expect((await eventsOf(id, 'esim.revoked')).map(({ data }) => data.reason)).toEqual(['Fraud']);
    for (const action of ['suspend', 'resume', 'revoke', 'replace'])
      expectProblem(await api.post(`/v1/esims/${id}/${action}`, {}), 409, 'not_supported');
    const { order_id: orderId } = await device.read(id);
    expect(await orderEnded(api, orderId as string)).toMatchObject({
      status: 'issued',
      refunded: { amount: 0 },
    });
  });

  it('takes no top-up and no cancellation while a revocation is pending', async () => {
    const id = await issueEsim(api, ONE_GB);
    const esim = await device.read(id);
    // The worker finds no due action.
    await service.database.pool.query(
      `UPDATE esims SET pending_action = 'revoke', action_due_at = 'infinity' WHERE id = $1`,
      [id],
    );
    const topup = { esim_id: id, package_id: 'pkg_fr_topup_1gb_7d' };
    expectProblem(await api.post('/v1/topups', topup), 409, 'esim_not_ready');
    expect((await api.get(`/v1/esims/${id}/topup-packages`)).body.data).toEqual([]);
    expectProblem(await api.post(`/v1/orders/${esim['order_id']}/cancel`), 409, 'order_not_cancelable');
    const refused = await api.post(`/v1/esims/${id}/suspend`, {});
    expectProblem(refused, 409, 'not_supported');
    expect(refused.body['detail']).toContain('The action revoke is pending.');
  });

  it('expires a suspended eSIM', async () => {
    const id = await device.activeEsim();
    await request(id, 'suspend');
    await settled(id);
    await service.database.pool.query(`UPDATE esims SET expires_at = now() WHERE id = $1`, [id]);
    await eventually('the eSIM expires', async () => (await device.read(id))['status'] === 'expired');
    expect(await device.read(id)).toMatchObject({ actions: [] });
    expect(await eventsOf(id, 'esim.expired', 'esim.resumed')).toHaveLength(1);
  });

  it('requests an action once per Idempotency-Key', async () => {
    const id = await device.activeEsim();
    const idempotencyKey = `suspend-${id}`;
    const answers = await Promise.all(
      [1, 2].map(() => api.post(`/v1/esims/${id}/suspend`, {}, { idempotencyKey })),
    );
    for (const answer of answers) expect([202, 409], answer.text).toContain(answer.status);
    await settled(id);
    expect((await api.post(`/v1/esims/${id}/suspend`, {}, { idempotencyKey })).status).toBe(202);
    expect(await eventsOf(id, 'esim.suspended')).toHaveLength(1);
  });
});

describe('replace', () => {
  it('cancels the eSIM, issues a new one of the same package, and shows which one it replaces', async () => {
    const [id, other] = await issueEsims(api, ONE_GB, 2);
    const old = await device.read(id!);
    expect(old['actions']).toEqual(['suspend', 'revoke', 'cancel', 'replace']);
    const answer = await api.post(`/v1/esims/${id}/replace`);
    expect(answer.status, answer.text).toBe(202);
    expect(answer.headers.get('location')).toBe(`/v1/orders/${answer.body.data.id}`);
    expect(answer.body.data).toMatchObject({
      status: 'pending',
      replaces: id,
      quantity: 1,
      package_id: ONE_GB,
    });
    const order = await orderEnded(api, answer.body.data.id as string);
    expect(order).toMatchObject({ status: 'issued', refunded: { amount: 0 } });
    expect(order['esims'][0].esim_id).not.toBe(id);
    expect(await device.read(id!)).toMatchObject({ status: 'canceled', pending_action: null });
    expect(await device.read(other!)).toMatchObject({ status: 'issued' });
    const before = await orderEnded(api, old['order_id'] as string);
    expect(before).toMatchObject({ status: 'issued', cancel_failure: null });
    expect(before['refunded']).toEqual(before['unit_price']);
  });

  it('refuses an eSIM that is in use', async () => {
    const id = await device.activeEsim();
    expectProblem(await api.post(`/v1/esims/${id}/replace`), 409, 'not_supported');
  });
});
