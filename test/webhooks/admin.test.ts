import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { listDeliveries, recordEvent, recordEvents, registerEndpoint } from './support.js';

let service: TestService;
let partner: TestPartner;
let path: string;

beforeAll(async () => {
  service = await startTestService({ role: 'admin', env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' } });
});
beforeEach(async () => {
  const answer = await service.admin.post('/internal/v1/partners', { name: 'Test Travel' });
  partner = { id: answer.body.data.id } as TestPartner;
  path = `/internal/v1/partners/${partner.id}/webhook-endpoints`;
});
afterAll(() => service.stop());

const URL = 'https://partner.example/hook';
const create = (body: object = {}, key?: string) =>
  service.admin.post(path, { mode: 'sandbox', url: URL, ...body }, key ? { idempotencyKey: key } : {});

async function auditActions(subjectId: string): Promise<string[]> {
  const { body } = await service.admin.get(`/internal/v1/audit-log?subject_id=${subjectId}`);
  return (body.data as { action: string }[]).map((entry) => entry.action).reverse();
}

describe('registration', () => {
  it('returns the secret only once: not in its replay, a list, the audit log or the table', async () => {
    const key = randomUUID();
    const answer = await create({ description: 'orders', event_types: ['order.issued'] }, key);
    expect(answer.status, answer.text).toBe(201);
    const { secret, ...shown } = answer.body.data as { secret: string; id: string };
    expect(secret).toMatch(/^whsec_[0-9A-Za-z]{32,}$/);
    expect(shown).toEqual({
      id: expect.stringMatching(/^whe_[0-9A-HJKMNP-TV-Z]{26}$/),
      partner_id: partner.id,
      mode: 'sandbox',
      url: URL,
      description: 'orders',
      event_types: ['order.issued'],
      signature_schemes: ['document'],
      usage_levels: null,
      status: 'enabled',
      blocked_until: null,
      consecutive_blocks: 0,
      disabled_reason: null,
      disabled_at: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
      previous_secret_until: null,
      last_success_at: null,
      failing_since: null,
      failing_cause: null,
      attempts_24h: { succeeded: 0, failed: 0 },
      deliveries_24h: { delivered: 0, failed: 0, pending: 0 },
      pending_count: 0,
      held_count: 0,
      failed_since_last_success: 0,
    });
    expect(answer.headers.get('location')).toBe(`${path}/${shown.id}`);

    const replay = await create({ description: 'orders', event_types: ['order.issued'] }, key);
    expect(replay.headers.get('idempotent-replayed')).toBe('true');
    expect(replay.body.data).toEqual({ ...shown, secret: null });
    expect((await service.admin.get(`${path}/${shown.id}`)).body.data).toEqual(shown);
    const elsewhere = await Promise.all([
      service.admin.get(path),
      service.admin.get('/internal/v1/webhook-endpoints'),
      service.admin.get(`/internal/v1/audit-log?subject_id=${shown.id}`),
    ]);
    for (const { text } of elsewhere) expect(text).not.toContain(secret);
    for (const table of ['webhook_endpoints', 'idempotency_keys', 'audit_log']) {
      const { rows } = await service.database.pool.query(`SELECT t::text AS line FROM ${table} t`);
      expect(JSON.stringify(rows), table).not.toContain(secret);
    }
  });

  it.each([
    [{ url: 'http://partner.example/' }, '/url'],
    [{ url: 'https://10.0.0.1/' }, '/url'],
    [{ url: 'https://localhost/' }, '/url'],
    [{ url: 'https://u:p@partner.example/' }, '/url'],
    [{ url: 'https://partner.example/#x' }, '/url'],
    [{ url: `https://partner.example/${'a'.repeat(2_048)}` }, '/url'],
    [{ url: 7 }, '/url'],
    [{ url: null }, '/url'],
    [{ mode: 'test' }, '/mode'],
    [{ event_types: [] }, '/event_types'],
    [{ event_types: ['order.issued', 'order.issued'] }, '/event_types'],
    [{ event_types: ['order.unknown'] }, '/event_types'],
    [{ event_types: ['webhook.test'] }, '/event_types'],
    [{ event_types: 'order.issued' }, '/event_types'],
    [{ usage_levels: [0] }, '/usage_levels'],
    [{ usage_levels: [50, 50] }, '/usage_levels'],
    [{ description: 'a'.repeat(201) }, '/description'],
    [{ secret: 'mine' }, '/secret'],
  ])('refuses %j with the pointer %s and stores nothing', async (body, pointer) => {
    const key = randomUUID();
    const answer = await create(body, key);
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    expect(answer.body.errors.map((error: { pointer: string }) => error.pointer)).toContain(pointer);
    expect((await service.admin.get(path)).body.data).toEqual([]);
    expect((await create({}, key)).status).toBe(201);
  });

  it('accepts at most twenty endpoints per partner and mode, even concurrently', async () => {
    const answers = await Promise.all(Array.from({ length: 26 }, () => create()));
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(20);
    for (const { status, body } of answers)
      if (status !== 201) expect([status, body.code]).toEqual([409, 'limit_reached']);
    expect((await create({ mode: 'live' })).status).toBe(201);
    const [first] = (await service.admin.get(path)).body.data;
    await service.admin.call('DELETE', `${path}/${first.id}`);
    expect((await create({ mode: first.mode })).status).toBe(201);
  });

  it('returns 404 for a partner that does not exist', async () => {
    for (const id of ['ptn_01KAEXAMPLE000000000000000', 'ptn_x']) {
      const nowhere = `/internal/v1/partners/${id}/webhook-endpoints`;
      expect((await service.admin.post(nowhere, { mode: 'live', url: URL })).status).toBe(404);
      expect((await service.admin.get(nowhere)).status).toBe(404);
    }
  });
});

describe('an endpoint', () => {
  it('can be changed field by field: null clears the description and selects the default types', async () => {
    const { id } = (await create({ description: 'a', event_types: ['esim.activated'] })).body.data as {
      id: string;
    };
    const patch = (body: unknown) => service.admin.call('PATCH', `${path}/${id}`, { body });
    expect((await patch({ url: 'https://other.example/' })).body.data).toMatchObject({
      url: 'https://other.example/',
      description: 'a',
      event_types: ['esim.activated'],
    });
    const changed = (await patch({ description: null, event_types: null })).body.data;
    expect(changed).toMatchObject({ description: null, event_types: null });
    expect((await patch({ description: null })).body.data).toEqual(changed);
    expect((await patch({})).body.data).toEqual(changed);
    for (const body of [
      { url: null },
      { url: 'http://x.example/' },
      { event_types: [] },
      { mode: 'live' },
      { status: 'disabled' },
    ]) {
      expect((await patch(body)).body.code, JSON.stringify(body)).toBe('validation_failed');
    }
    expect(await auditActions(id)).toEqual([
      'webhook_endpoint.created',
      'webhook_endpoint.updated',
      'webhook_endpoint.updated',
    ]);
  });

  it('is a 404 for another partner in every operation', async () => {
    const { id } = (await create()).body.data as { id: string };
    const other = (await service.admin.post('/internal/v1/partners', { name: 'Other' })).body.data
      .id as string;
    for (const foreign of [`/internal/v1/partners/${other}/webhook-endpoints/${id}`, `${path}/whe_nothing`]) {
      const answers = await Promise.all([
        service.admin.get(foreign),
        service.admin.get(`${foreign}/deliveries`),
        service.admin.call('PATCH', foreign, { body: { description: 'x' } }),
        service.admin.call('DELETE', foreign),
        ...['enable', 'disable', 'rotate-secret', 'rotate-secret/finish', 'test'].map((action) =>
          service.admin.post(`${foreign}/${action}`),
        ),
      ]);
      expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 404));
    }
    expect((await service.admin.get(`${path}/${id}`)).body.data.status).toBe('enabled');
  });

  it('can be listed across partners by status', async () => {
    const on = (await create()).body.data as { id: string };
    const off = (await create()).body.data as { id: string };
    const blocked = (await create()).body.data as { id: string };
    await service.admin.post(`${path}/${off.id}/disable`);
    await service.database.pool.query(
      `UPDATE webhook_endpoints SET blocked_until = now() + interval '1 minute', consecutive_blocks = 1 WHERE id = $1`,
      [blocked.id],
    );
    const ids = async (status: string): Promise<string[]> => {
      const { body } = await service.admin.get(`/internal/v1/webhook-endpoints?limit=100&status=${status}`);
      return (body.data as { id: string; status: string }[])
        .filter((e) => e.status === status)
        .map((e) => e.id);
    };
    expect(await ids('enabled')).toContain(on.id);
    expect(await ids('disabled')).toContain(off.id);
    expect(await ids('blocked')).toEqual([blocked.id]);
    expect((await service.admin.get('/internal/v1/webhook-endpoints?status=off')).status).toBe(400);

    await service.database.pool.query(`UPDATE webhook_endpoints SET blocked_until = now() WHERE id = $1`, [
      blocked.id,
    ]);
    expect((await service.admin.get(`${path}/${blocked.id}`)).body.data).toMatchObject({
      status: 'enabled',
      blocked_until: null,
      consecutive_blocks: 1,
    });
  });
});

describe('the secret', () => {
  it('is rotated with a grace period and shown once, and the grace period can be ended', async () => {
    const { id, secret } = (await create()).body.data as { id: string; secret: string };
    const key = randomUUID();
    const answer = await service.admin.post(`${path}/${id}/rotate-secret`, undefined, {
      idempotencyKey: key,
    });
    expect(answer.status, answer.text).toBe(200);
    const rotated = answer.body.data as { secret: string; previous_secret_until: string };
    expect(rotated.secret).toMatch(/^whsec_/);
    expect(rotated.secret).not.toBe(secret);
    const hours = (Date.parse(rotated.previous_secret_until) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThan(24.1);
    const replay = await service.admin.post(`${path}/${id}/rotate-secret`, undefined, {
      idempotencyKey: key,
    });
    expect(replay.body.data).toEqual({ ...rotated, secret: null });

    const finished = await service.admin.post(`${path}/${id}/rotate-secret/finish`);
    expect([finished.status, 'secret' in finished.body.data]).toEqual([200, false]);
    expect((await service.admin.post(`${path}/${id}/rotate-secret/finish`)).status).toBe(200);
    const { rows } = await service.database.pool.query(
      'SELECT previous_secret, previous_secret_until FROM webhook_endpoints WHERE id = $1',
      [id],
    );
    expect(rows[0]).toEqual({ previous_secret: null, previous_secret_until: null });
    expect(await auditActions(id)).toEqual([
      'webhook_endpoint.created',
      'webhook_endpoint.secret_rotated',
      'webhook_endpoint.secret_rotation_finished',
    ]);
  });

  it.each([[-1], [604_801], [1.5], ['60']])('refuses a grace of %j', async (grace_seconds) => {
    const { id } = (await create()).body.data as { id: string };
    const answer = await service.admin.post(`${path}/${id}/rotate-secret`, { grace_seconds });
    expect([answer.status, answer.body.errors?.[0].pointer]).toEqual([400, '/grace_seconds']);
  });
});

describe('the delivery log', () => {
  it('filters by status, type, event and time, and pages without loss or repetition', async () => {
    const endpoint = await registerEndpoint(service, partner.id, { url: URL });
    await recordEvents(
      service,
      Array.from({ length: 7 }, () => ({ partnerId: partner.id })),
    );
    await recordEvent(service, { partnerId: partner.id, type: 'esim.expired' });
    const all = await listDeliveries(service, endpoint);
    expect(all).toHaveLength(8);
    expect(all[0]).toEqual({
      id: expect.stringMatching(/^dlv_/),
      endpoint_id: endpoint.id,
      event_id: expect.stringMatching(/^evt_/),
      event_type: 'esim.expired',
      kind: 'event',
      status: 'pending',
      attempt_count: 0,
      next_attempt_at: expect.any(String),
      created_at: expect.any(String),
      delivered_at: null,
      last_attempt: null,
      current_attempt: null,
    });
    expect(await listDeliveries(service, endpoint, '&event_type=esim.expired')).toEqual([all[0]]);
    expect(await listDeliveries(service, endpoint, `&event_id=${all[3]!.event_id}`)).toEqual([all[3]]);
    expect(await listDeliveries(service, endpoint, '&status=held')).toEqual([]);
    expect(await listDeliveries(service, endpoint, '&status=pending')).toHaveLength(8);
    const newestAt = encodeURIComponent(all[0]!.created_at);
    expect(await listDeliveries(service, endpoint, `&created_after=${newestAt}`)).toEqual([all[0]]);
    expect(await listDeliveries(service, endpoint, `&created_before=${newestAt}`)).toEqual(all.slice(1));

    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const { body } = await service.admin.get(`${endpoint.path}/deliveries?limit=3&status=pending${cursor}`);
      seen.push(...(body.data as { id: string }[]).map((delivery) => delivery.id));
      if (!body.has_more) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    expect(seen).toEqual(all.map((delivery) => delivery.id));
    for (const query of [
      'status=lost',
      'event_type=x',
      'event_id=1',
      'created_after=yesterday',
      'x=1',
      'limit=0',
    ]) {
      expect((await service.admin.get(`${endpoint.path}/deliveries?${query}`)).status, query).toBe(400);
    }
  });
});
