import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import { type ApiAnswer, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { postAtOnce } from '../harness/order-steps.js';
import { openPortal } from '../harness/portal.js';

const PARTNERS = '/internal/v1/partners';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(async () => {
  await service.stop();
});

async function create(body: unknown = { name: 'Acme Travel' }): Promise<Record<string, string>> {
  const answer = await service.admin.post(PARTNERS, body);
  expect(answer.status).toBe(201);
  return answer.body.data as Record<string, string>;
}

async function auditOf(subjectId: string): Promise<Record<string, unknown>[]> {
  const answer = await service.admin.get(`/internal/v1/audit-log?subject_id=${subjectId}`);
  expect(answer.status).toBe(200);
  return answer.body.data as Record<string, unknown>[];
}

function expectProblem(answer: ApiAnswer, status: number, code: string): void {
  expect([answer.status, answer.body.code]).toEqual([status, code]);
  expect(answer.headers.get('content-type')).toContain('application/problem+json');
}

describe('creating a partner', () => {
  it('returns 201 with the partner and its location', async () => {
    const answer = await service.admin.post(PARTNERS, { name: 'Acme Travel', email: 'it@acme.example' });
    expect(answer.status).toBe(201);
    const { data } = answer.body;
    expect(data).toEqual({
      id: expect.stringMatching(/^ptn_[0-9A-HJKMNP-TV-Z]{26}$/),
      name: 'Acme Travel',
      email: 'it@acme.example',
      status: 'active',
      suspended_reason: null,
      brand: { name: null, logo_url: null, accent: null, help_url: null },
      low_balances: [],
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: data.created_at,
    });
    expect(answer.headers.get('location')).toBe(`${PARTNERS}/${data.id}`);
    expect((await service.admin.get(`${PARTNERS}/${data.id}`)).body.data).toEqual(data);
  });

  it('creates one partner per Idempotency-Key and replays the response', async () => {
    const before = await countPartners();
    const options = { idempotencyKey: 'partner-once-0001' };
    const answers = await postAtOnce(service.admin, PARTNERS, { name: 'Once' }, 10, options.idempotencyKey);
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get('idempotent-replayed') === 'true')).toHaveLength(9);
    expect(await countPartners()).toBe(before + 1);
    expectProblem(
      await service.admin.post(PARTNERS, { name: 'Other' }, options),
      422,
      'idempotency_key_reused',
    );
  });

  it.each([
    ['no name', {}],
    ['an empty name', { name: '' }],
    ['a name of 201 characters', { name: 'x'.repeat(201) }],
    ['NUL in the name', { name: 'a\0b' }],
    ['an invalid address', { name: 'Acme', email: 'acme' }],
    ['an unknown field', { name: 'Acme', status: 'suspended' }],
  ])('refuses %s', async (_, body) => {
    expectProblem(await service.admin.post(PARTNERS, body), 400, 'validation_failed');
  });
});

describe('reading partners', () => {
  it('lists newest first, page by page, while new ones are created', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await create({ name: `Listed ${i}` }))['id']!);
    const first = await service.admin.get(`${PARTNERS}?limit=2`);
    await create();
    const second = await service.admin.get(`${PARTNERS}?limit=2&cursor=${first.body.next_cursor}`);
    expect(first.body.has_more).toBe(true);
    expect([...first.body.data, ...second.body.data].map((partner) => partner.id)).toEqual(ids.slice(0, 4));
  });

  it('filters by status and binds the cursor to the filter', async () => {
    const { id } = await create();
    await service.admin.post(`${PARTNERS}/${id}/suspend`);
    const suspended = await service.admin.get(`${PARTNERS}?status=suspended&limit=100`);
    expect(suspended.body.data.map((partner: { id: string }) => partner.id)).toContain(id);
    expect(suspended.body.data.every((partner: { status: string }) => partner.status === 'suspended')).toBe(
      true,
    );
    const { next_cursor: cursor } = (await service.admin.get(`${PARTNERS}?limit=1`)).body;
    expectProblem(
      await service.admin.get(`${PARTNERS}?limit=1&status=active&cursor=${cursor}`),
      400,
      'invalid_cursor',
    );
    expectProblem(await service.admin.get(`${PARTNERS}?status=gone`), 400, 'validation_failed');
    expectProblem(await service.admin.get(`${PARTNERS}?name=Acme`), 400, 'validation_failed');
  });

  it('returns 404 for unknown and malformed ids', async () => {
    for (const id of [newId('ptn'), newId('key'), 'ptn_1', '1']) {
      expectProblem(await service.admin.get(`${PARTNERS}/${id}`), 404, 'not_found');
      expectProblem(await service.admin.call('PATCH', `${PARTNERS}/${id}`, { body: {} }), 404, 'not_found');
      expectProblem(await service.admin.post(`${PARTNERS}/${id}/suspend`), 404, 'not_found');
      expectProblem(await service.admin.post(`${PARTNERS}/${id}/reinstate`), 404, 'not_found');
    }
  });
});

describe('changing a partner', () => {
  it('changes the sent fields, keeps the rest, and audits it', async () => {
    const { id } = await create({ name: 'Before', email: 'it@acme.example' });
    const renamed = await service.admin.call('PATCH', `${PARTNERS}/${id}`, { body: { name: 'After' } });
    expect(renamed.status).toBe(200);
    expect(renamed.body.data).toMatchObject({ id, name: 'After', email: 'it@acme.example' });
    const cleared = await service.admin.call('PATCH', `${PARTNERS}/${id}`, { body: { email: null } });
    expect(cleared.body.data).toMatchObject({ name: 'After', email: null });
    expect(Date.parse(cleared.body.data.updated_at)).toBeGreaterThan(
      Date.parse(cleared.body.data.created_at),
    );
    expect((await auditOf(id!)).map((entry) => [entry['action'], entry['details']])).toEqual([
      ['partner.updated', { fields: ['email'] }],
      ['partner.updated', { fields: ['name'], name: 'After', previous_name: 'Before' }],
      ['partner.created', { name: 'Before' }],
    ]);
  });

  it('changes and audits nothing when the values are the same', async () => {
    const created = await create({ name: 'Same' });
    const { id } = created;
    for (const body of [undefined, {}, { name: 'Same', email: null }]) {
      const answer = await service.admin.call('PATCH', `${PARTNERS}/${id}`, { body });
      expect(answer.status).toBe(200);
      expect(answer.body.data).toEqual(created);
    }
    expect(await auditOf(id!)).toHaveLength(1);
  });

  it('changes only the sent fields of the brand, which the session of the portal shows', async () => {
    const { id } = await service.createPartner();
    const patch = (brand: object) => service.admin.call('PATCH', `${PARTNERS}/${id}`, { body: { brand } });
    const logo_url = 'https://acme.example/logo.svg';
    await patch({ name: 'Acme', logo_url, accent: '#0a66c2', help_url: 'https://acme.example/help' });
    const changed = await patch({ accent: '#ffffff', help_url: null });
    const brand = { name: 'Acme', logo_url, accent: '#ffffff', help_url: null };
    expect(changed.body.data).toMatchObject({ name: 'Test Travel', brand });
    expect((await auditOf(id)).filter(({ action }) => action === 'partner.updated')).toHaveLength(2);
    await patch({ name: 'Acme' });
    expect((await auditOf(id)).filter(({ action }) => action === 'partner.updated')).toHaveLength(2);
    const browser = await openPortal(service.admin, service.process.portal!.url, id);
    expect((await browser.get('session')).body.data.partner.brand).toEqual(brand);
  });

  it('sets the low-balance threshold of a currency, for a token that may change money', async () => {
    const { id } = await create();
    const patch = (admin: HttpClient, amount: number | null, currency: string) =>
      admin.call('PATCH', `${PARTNERS}/${id}`, { body: { low_balance: { amount, currency } } });
    await patch(service.admin, 10_000, 'USD');
    const both = await patch(service.admin, 500, 'EUR');
    const usd = { amount: 10_000, currency: 'USD' };
    expect(both.body.data.low_balances).toEqual([{ amount: 500, currency: 'EUR' }, usd]);
    expect((await patch(service.admin, null, 'EUR')).body.data.low_balances).toEqual([usd]);
    expect((await service.admin.get(`${PARTNERS}/${id}`)).body.data.low_balances).toEqual([usd]);
    const [{ low_balance_amount }] = (await service.admin.get(`${PARTNERS}/${id}/wallet`)).body.data.filter(
      ({ currency }: { currency: string }) => currency === 'USD',
    );
    expect(low_balance_amount).toBe(10_000);
  });

  it.each([
    [{ name: null }],
    [{ name: '' }],
    [{ email: 'acme' }],
    [{ status: 'suspended' }],
    [{ id: 'x' }],
    [{ brand: null }],
    [{ brand: { logo_url: 'http://acme.example/logo.svg' } }],
    [{ brand: { logo_url: 'javascript:alert(1)' } }],
    [{ brand: { logo_url: 'https://*' } }],
    [{ brand: { logo_url: 'https://acme.example;form-action/logo.svg' } }],
    [{ brand: { logo_url: 'https://acme.example,b.example/logo.svg' } }],
    [{ brand: { logo_url: 'https:///logo.svg' } }],
    [{ brand: { logo_url: 'https://acme.example/my logo.svg' } }],
    [{ brand: { help_url: 'https://acme.example@phish.example/' } }],
    [{ brand: { accent: 'red' } }],
    [{ brand: { help_url: '/help' } }],
    [{ brand: { font: 'Arial' } }],
    [{ low_balance: { currency: 'USD' } }],
    [{ low_balance: { amount: -1, currency: 'USD' } }],
  ])('refuses %j', async (body) => {
    const { id } = await create();
    expectProblem(await service.admin.call('PATCH', `${PARTNERS}/${id}`, { body }), 400, 'validation_failed');
  });
});

describe('suspending a partner', () => {
  it('refuses its calls from the next one on, and reinstating restores access', async () => {
    const partner = await service.createPartner();
    expect((await partner.sandbox.get('/v1/me')).status).toBe(200);
    const suspended = await service.admin.post(`${PARTNERS}/${partner.id}/suspend`);
    expect([suspended.status, suspended.body.data.status]).toEqual([200, 'suspended']);
    expectProblem(await partner.sandbox.get('/v1/me'), 403, 'partner_suspended');
    const reinstated = await service.admin.post(`${PARTNERS}/${partner.id}/reinstate`);
    expect([reinstated.status, reinstated.body.data.status]).toEqual([200, 'active']);
    expect((await partner.sandbox.get('/v1/me')).status).toBe(200);
  });

  it('changes nothing when it is repeated', async () => {
    const { id } = await create();
    const first = await service.admin.post(`${PARTNERS}/${id}/suspend`);
    const again = await service.admin.post(`${PARTNERS}/${id}/suspend`);
    expect(again.status).toBe(200);
    expect(again.body.data).toEqual(first.body.data);
    await service.admin.post(`${PARTNERS}/${id}/reinstate`);
    await service.admin.post(`${PARTNERS}/${id}/reinstate`);
    expect((await auditOf(id!)).map((entry) => entry['action'])).toEqual([
      'partner.reinstated',
      'partner.suspended',
      'partner.created',
    ]);
  });

  it('shows its reason to the portal team, and audits the reason and the note of its end', async () => {
    const { id } = await create();
    const reason = 'Invoice 118 is overdue.';
    const suspended = await service.admin.post(`${PARTNERS}/${id}/suspend`, { reason });
    expect(suspended.body.data).toMatchObject({ status: 'suspended', suspended_reason: reason });
    expect((await service.admin.get(`${PARTNERS}/${id}`)).body.data.suspended_reason).toBe(reason);
    const reinstated = await service.admin.post(`${PARTNERS}/${id}/reinstate`, { note: 'Paid.' });
    expect(reinstated.body.data).toMatchObject({ status: 'active', suspended_reason: null });
    expect((await auditOf(id!)).map((entry) => [entry['action'], entry['details']])).toEqual([
      ['partner.reinstated', { note: 'Paid.' }],
      ['partner.suspended', { reason }],
      ['partner.created', { name: 'Acme Travel' }],
    ]);
  });

  it('accepts no unknown field', async () => {
    const { id } = await create();
    expectProblem(
      await service.admin.post(`${PARTNERS}/${id}/suspend`, { why: 'x' }),
      400,
      'validation_failed',
    );
    expect((await service.admin.post(`${PARTNERS}/${id}/suspend`, {})).status).toBe(200);
  });
});

describe('the audit log', () => {
  it('records token, portal user, request and time, and can be filtered by each', async () => {
    const answer = await service.admin.post(
      PARTNERS,
      { name: 'Audited' },
      { headers: { 'x-actor': 'usr_42' } },
    );
    const { id } = answer.body.data as { id: string };
    await service.admin.post(`${PARTNERS}/${id}/suspend`);
    const [suspended, created] = await auditOf(id);
    expect(created).toEqual({
      id: expect.stringMatching(/^aud_/),
      actor: 'portal',
      portal_user: 'usr_42',
      session_id: null,
      action: 'partner.created',
      partner_id: id,
      subject_id: id,
      details: { name: 'Audited' },
      request_id: answer.headers.get('x-request-id'),
      created_at: expect.stringMatching(/Z$/),
    });
    expect(suspended).toMatchObject({ portal_user: null, details: {} });
    const list = async (query: string) =>
      (await service.admin.get(`/internal/v1/audit-log?partner_id=${id}&${query}`)).body.data.map(
        (entry: { action: string }) => entry.action,
      );
    expect(await list('action=partner.created')).toEqual(['partner.created']);
    expect(await list('actor=portal')).toHaveLength(2);
    expect(await list('actor=support')).toHaveLength(0);
    expect(await list('created_after=0001-01-01T00:00:00Z&created_before=9999-12-31T23:59:59Z')).toHaveLength(
      2,
    );
    expect(await list('created_before=0001-01-01T15:59:00%2B15:59')).toHaveLength(0);
    expect(await list(`created_before=${encodeURIComponent(String(suspended!['created_at']))}`)).toHaveLength(
      1,
    );
    expectProblem(
      await service.admin.get('/internal/v1/audit-log?created_after=yesterday'),
      400,
      'validation_failed',
    );
  });

  it('has no entry for a refused creation', async () => {
    const before = (await service.admin.get('/internal/v1/audit-log?limit=1')).body.data[0].id;
    await service.admin.post(PARTNERS, { name: '' });
    expect((await service.admin.get('/internal/v1/audit-log?limit=1')).body.data[0].id).toBe(before);
  });
});

async function countPartners(): Promise<number> {
  const { rows } = await service.database.pool.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM partners',
  );
  return rows[0]!.n;
}
