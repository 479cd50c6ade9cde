import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/api-keys/allowed-cidr.js';
import { newId } from '../../src/common/ids.js';
import {
  type ApiAnswer,
  eventually,
  HttpClient,
  startTestService,
  type TestService,
} from '../harness/index.js';

const DAY_MS = 86_400_000;

let service: TestService;
let partnerId: string;

beforeAll(async () => {
  service = await startTestService();
  partnerId = await newPartner();
});

afterAll(async () => {
  await service.stop();
});

async function newPartner(): Promise<string> {
  const answer = await service.admin.post('/internal/v1/partners', { name: 'Key owner' });
  return (answer.body.data as { id: string }).id;
}

const keysOf = (id: string) => `/internal/v1/partners/${id}/api-keys`;

async function create(body: Record<string, unknown> = {}, owner?: string) {
  const answer = await service.admin.post(keysOf(owner ?? (await newPartner())), {
    mode: 'sandbox',
    ...body,
  });
  expect([answer.status, answer.body.code]).toEqual([201, undefined]);
  return answer.body.data as Record<string, string> & { allowed_cidrs: string[] | null };
}

const revoke = (key: Record<string, unknown>) =>
  service.admin.post(`${keysOf(String(key['partner_id']))}/${String(key['id'])}/revoke`);

const rotate = (key: Record<string, unknown>, body?: unknown) =>
  service.admin.post(`${keysOf(String(key['partner_id']))}/${String(key['id'])}/rotate`, body);

async function listed(owner: string): Promise<Record<string, unknown>[]> {
  const answer = await service.admin.get(`${keysOf(owner)}?limit=100`);
  expect(answer.status).toBe(200);
  return answer.body.data as Record<string, unknown>[];
}

const statusWith = async (key: string) => (await service.partnerApi(key).get('/v1/me')).status;

function expectProblem(answer: ApiAnswer, status: number, code: string): void {
  expect([answer.status, answer.body.code]).toEqual([status, code]);
}

describe('creating a key', () => {
  it.each([
    ['sandbox', `svc_${'sk'}_test_`],
    ['live', `svc_${'sk'}_live_`],
  ])('shows a %s key once and keeps its SHA-256', async (mode, prefix) => {
    const key = await create({ mode, name: 'Backend' });
    expect(key).toEqual({
      id: expect.stringMatching(/^key_[0-9A-HJKMNP-TV-Z]{26}$/),
      partner_id: expect.stringMatching(/^ptn_/),
      mode,
      name: 'Backend',
      prefix,
      last4: key['key']!.slice(-4),
      status: 'active',
      allowed_cidrs: null,
      expires_at: null,
      revoked_at: null,
      replaced_by: null,
      last_used_at: null,
      created_at: expect.stringMatching(/Z$/),
      key: expect.stringMatching(new RegExp(`^${prefix}[0-9A-Za-z]{32}$`)),
    });
    const { key: secret, ...shown } = key;
    expect(await listed(key['partner_id']!)).toEqual([shown]);
    const { rows } = await service.database.pool.query('SELECT * FROM api_keys WHERE id = $1', [key['id']]);
    expect(rows[0].hash.equals(createHash('sha256').update(secret!).digest())).toBe(true);
    expect(JSON.stringify(rows[0])).not.toContain(secret!.slice(prefix.length));
    expect(await statusWith(secret!)).toBe(200);
  });

  it('replays with key null, and stores no body with the key', async () => {
    const options = { idempotencyKey: 'key-once-00001' };
    const first = await service.admin.post(keysOf(partnerId), { mode: 'live' }, options);
    const again = await service.admin.post(keysOf(partnerId), { mode: 'live' }, options);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
    expect(again.body).toEqual({ ...first.body, data: { ...first.body.data, key: null } });
    const { rows } = await service.database.pool.query('SELECT body FROM idempotency_keys');
    expect(rows.some((row) => row.body.includes(first.body.data.key))).toBe(false);
    await revoke(first.body.data);
  });

  it('takes an expiry in the future, and refuses calls once it is past', async () => {
    const key = await create({ expires_at: new Date(Date.now() + 1_500).toISOString() });
    expect(await statusWith(key['key']!)).toBe(200);
    await eventually('the key expires', async () => (await statusWith(key['key']!)) === 401, 5_000);
    expect((await listed(key['partner_id']!))[0]).toMatchObject({ status: 'expired', revoked_at: null });
  });

  it('restricts a key to its networks', async () => {
    const home = await create({ allowed_cidrs: ['127.0.0.1', '::1'] });
    expect(home.allowed_cidrs).toEqual(['127.0.0.1/32', '::1/128']);
    expect(await statusWith(home['key']!)).toBe(200);
    const away = await create({ allowed_cidrs: ['203.0.113.0/24', '2001:DB8::/32', '203.0.113.0/24'] });
    expect(away.allowed_cidrs).toEqual(['203.0.113.0/24', '2001:db8::/32']);
    expectProblem(await service.partnerApi(away['key']!).get('/v1/me'), 403, 'ip_not_allowed');
  });

  it('takes 50 networks, and whatever it takes PostgreSQL takes too', async () => {
    const networks = Array.from({ length: 46 }, (_, i) => `10.${i}.0.0/16`);
    const odd = ['0.0.0.0/0', '::/0', '64:ff9b::192.0.2.0/120', '2001:DB8:0:0:1::/80'];
    const key = await create({ allowed_cidrs: [...networks, ...odd] });
    expect(key.allowed_cidrs).toHaveLength(50);
    const { rows } = await service.database.pool.query(
      'SELECT array(SELECT x::cidr::text FROM unnest($1::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n) AS texts',
      [[...networks, ...odd].map(parseCidr)],
    );
    expect(key.allowed_cidrs).toEqual(rows[0].texts);
  });

  it.each([
    ['no body', undefined],
    ['no mode', {}],
    ['an unknown mode', { mode: 'test' }],
    ['a mode in a list', { mode: ['live'] }],
    ['an empty name', { mode: 'live', name: '' }],
    ['a name of 101 characters', { mode: 'live', name: 'x'.repeat(101) }],
    ['an expiry in the past', { mode: 'live', expires_at: '2020-01-01T00:00:00Z' }],
    ['an expiry in the year 0', { mode: 'live', expires_at: '0000-01-01T00:00:00Z' }],
    ['an expiry without a zone', { mode: 'live', expires_at: '2099-01-01T00:00:00' }],
    ['31 February', { mode: 'live', expires_at: '2099-02-31T00:00:00Z' }],
    ['a number for an expiry', { mode: 'live', expires_at: 4_000_000_000 }],
    ['no network at all', { mode: 'live', allowed_cidrs: [] }],
    ['51 networks', { mode: 'live', allowed_cidrs: Array.from({ length: 51 }, (_, i) => `10.0.0.${i}`) }],
    ['a network that is a name', { mode: 'live', allowed_cidrs: ['example.com'] }],
    ['a network with host bits', { mode: 'live', allowed_cidrs: ['10.0.0.1/8'] }],
    ['null for a network', { mode: 'live', allowed_cidrs: [null] }],
    ['text for a list', { mode: 'live', allowed_cidrs: '10.0.0.0/8' }],
    ['a key of its own', { mode: 'live', key: 'mine' }],
  ])('refuses %s', async (_, body) => {
    const answer = await service.admin.post(keysOf(partnerId), body);
    expectProblem(answer, 400, 'validation_failed');
    expect(answer.body.errors.length).toBeGreaterThan(0);
  });

  it('leaves the Idempotency-Key free when the expiry is past', async () => {
    const options = { idempotencyKey: 'key-free-00001' };
    const owner = await newPartner();
    const past = { mode: 'live', expires_at: '2020-01-01T00:00:00Z' };
    expectProblem(await service.admin.post(keysOf(owner), past, options), 400, 'validation_failed');
    expect((await service.admin.post(keysOf(owner), { mode: 'live' }, options)).status).toBe(201);
  });
});

describe('the limit of 10 active keys', () => {
  it('holds exactly when 30 are made at once', async () => {
    const owner = await newPartner();
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => service.admin.post(keysOf(owner), { mode: 'sandbox' })),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(10);
    const refused = answers.filter((answer) => answer.status === 409);
    expect(refused.map((answer) => answer.body.code)).toEqual(Array(20).fill('limit_reached'));
    expect(await listed(owner)).toHaveLength(10);
  });

  it('counts each mode apart, and neither revoked nor expired keys', async () => {
    const owner = await newPartner();
    const keys = [];
    for (let i = 0; i < 10; i++) keys.push(await create({ mode: 'live' }, owner));
    expectProblem(await service.admin.post(keysOf(owner), { mode: 'live' }), 409, 'limit_reached');
    await create({ mode: 'sandbox' }, owner);
    await revoke(keys[0]!);
    const short = await create({ mode: 'live', expires_at: new Date(Date.now() + 500).toISOString() }, owner);
    expectProblem(await service.admin.post(keysOf(owner), { mode: 'live' }), 409, 'limit_reached');
    await eventually('the key expires', async () => (await statusWith(short['key']!)) === 401, 5_000);
    await create({ mode: 'live' }, owner);
  });

  it('does not stop a rotation, whose old key does not count while it is in its grace', async () => {
    const owner = await newPartner();
    const keys = [];
    for (let i = 0; i < 10; i++) keys.push(await create({}, owner));
    const rotated = await rotate(keys[0]!);
    expect(rotated.status).toBe(200);
    expect(await statusWith(keys[0]!['key']!)).toBe(200);
    expectProblem(await service.admin.post(keysOf(owner), { mode: 'sandbox' }), 409, 'limit_reached');
    await revoke(rotated.body.data);
    await create({}, owner);
  });
});

describe('revoking a key', () => {
  it('refuses every call that starts after the answer', async () => {
    for (let i = 0; i < 10; i++) {
      const key = await create();
      const api = service.partnerApi(key['key']!);
      expect((await api.get('/v1/me')).status).toBe(200);
      const answer = await revoke(key);
      expect([answer.status, answer.body.data.status]).toEqual([200, 'revoked']);
      const statuses = await Promise.all(
        Array.from({ length: 5 }, async () => (await api.get('/v1/me')).status),
      );
      expect(statuses).toEqual([401, 401, 401, 401, 401]);
    }
  });

  it('is 200 twice and changes nothing the second time', async () => {
    const key = await create();
    const first = await revoke(key);
    const again = await revoke(key);
    expect(again.status).toBe(200);
    expect(again.body.data).toEqual(first.body.data);
    const audit = await service.admin.get(`/internal/v1/audit-log?subject_id=${key['id']}`);
    expect(audit.body.data.map((entry: { action: string }) => entry.action)).toEqual([
      'api_key.revoked',
      'api_key.created',
    ]);
  });
});

describe('rotating a key', () => {
  const terms = { name: 'Backend', allowed_cidrs: ['127.0.0.0/8'] };

  it('gives a successor with the same terms, and both work for a day', async () => {
    const expiresAt = new Date(Date.now() + 30 * DAY_MS).toISOString();
    const old = await create({ ...terms, mode: 'live', expires_at: expiresAt });
    const answer = await rotate(old);
    expect(answer.status).toBe(200);
    const successor = answer.body.data;
    expect(successor).toMatchObject({ ...terms, mode: 'live', expires_at: expiresAt, status: 'active' });
    expect(successor.id).not.toBe(old['id']);
    expect(await statusWith(old['key']!)).toBe(200);
    expect(await statusWith(successor.key)).toBe(200);
    const before = (await listed(old['partner_id']!)).find((key) => key['id'] === old['id'])!;
    expect(before).toMatchObject({ status: 'active', replaced_by: successor.id, revoked_at: null });
    expect(Date.parse(String(before['expires_at'])) - Date.now()).toBeGreaterThan(DAY_MS - 60_000);
    expect(Date.parse(String(before['expires_at'])) - Date.now()).toBeLessThan(DAY_MS + 60_000);
  });

  it('ends the old key at once with a grace of 0', async () => {
    const old = await create();
    const { key } = (await rotate(old, { grace_seconds: 0 })).body.data;
    expect(await statusWith(old['key']!)).toBe(401);
    expect(await statusWith(key)).toBe(200);
  });

  it('never lengthens the life of the old key', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const old = await create({ expires_at: expiresAt });
    await rotate(old, { grace_seconds: 604_800 });
    const keys = await listed(old['partner_id']!);
    expect(keys.map((key) => key['expires_at'])).toEqual([expiresAt, expiresAt]);
  });

  it('lets either be revoked without the other', async () => {
    const old = await create();
    const successor = (await rotate(old)).body.data;
    await revoke(old);
    expect([await statusWith(old['key']!), await statusWith(successor.key)]).toEqual([401, 200]);
    const other = await create();
    const its = (await rotate(other)).body.data;
    await revoke(its);
    expect([await statusWith(other['key']!), await statusWith(its.key)]).toEqual([200, 401]);
  });

  it('is 409 for a key that is revoked, expired or replaced already, and makes no key', async () => {
    const revoked = await create();
    await revoke(revoked);
    const replaced = await create();
    await rotate(replaced);
    const expired = await create({ expires_at: new Date(Date.now() + 300).toISOString() });
    await eventually('the key expires', async () => (await statusWith(expired['key']!)) === 401, 5_000);
    for (const [key, total] of [
      [revoked, 1],
      [replaced, 2],
      [expired, 1],
    ] as const) {
      expectProblem(await rotate(key), 409, 'conflict');
      expect(await listed(key['partner_id']!)).toHaveLength(total);
    }
  });

  it('makes one successor when ten rotations come at once', async () => {
    const old = await create();
    const answers = await Promise.all(Array.from({ length: 10 }, () => rotate(old)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, ...Array<number>(9).fill(409)]);
    expect(await listed(old['partner_id']!)).toHaveLength(2);
  });

  it('replays with key null', async () => {
    const old = await create();
    const path = `${keysOf(old['partner_id']!)}/${old['id']}/rotate`;
    const options = { idempotencyKey: 'rotate-once-01' };
    const first = await service.admin.post(path, {}, options);
    const again = await service.admin.post(path, {}, options);
    expect(again.body).toEqual({ ...first.body, data: { ...first.body.data, key: null } });
  });

  it.each([[-1], [604_801], [1.5], ['60'], [[60]]])('refuses a grace of %j', async (grace_seconds) => {
    const key = await create();
    expectProblem(await rotate(key, { grace_seconds }), 400, 'validation_failed');
    expect((await rotate(key, { grace_seconds: 604_800 })).status).toBe(200);
  });
});

describe('whose key it is', () => {
  it('is one 404 for unknown, malformed and foreign ids', async () => {
    const key = await create();
    const stranger = await newPartner();
    for (const owner of [stranger, newId('ptn'), 'ptn_1']) {
      for (const id of [key['id']!, newId('key'), 'key_1']) {
        if (owner === key['partner_id']) continue;
        for (const action of ['revoke', 'rotate']) {
          expectProblem(await service.admin.post(`${keysOf(owner)}/${id}/${action}`), 404, 'not_found');
        }
      }
    }
    for (const owner of [newId('ptn'), 'ptn_1']) {
      expectProblem(await service.admin.get(keysOf(owner)), 404, 'not_found');
      expectProblem(await service.admin.post(keysOf(owner), { mode: 'live' }), 404, 'not_found');
    }
    expect(await statusWith(key['key']!)).toBe(200);
  });

  it('lists newest first, by mode, page by page', async () => {
    const owner = await newPartner();
    const ids: string[] = [];
    for (let i = 0; i < 4; i++)
      ids.unshift((await create({ mode: i === 1 ? 'live' : 'sandbox' }, owner))['id']!);
    const first = await service.admin.get(`${keysOf(owner)}?limit=3`);
    const second = await service.admin.get(`${keysOf(owner)}?limit=3&cursor=${first.body.next_cursor}`);
    expect([...first.body.data, ...second.body.data].map((key) => key.id)).toEqual(ids);
    const live = await service.admin.get(`${keysOf(owner)}?mode=live`);
    expect(live.body.data.map((key: { id: string }) => key.id)).toEqual([ids[2]]);
    const elsewhere = await service.admin.get(
      `${keysOf(partnerId)}?limit=3&cursor=${first.body.next_cursor}`,
    );
    expectProblem(elsewhere, 400, 'invalid_cursor');
  });

  it('is 401 without an admin token', async () => {
    const key = await create();
    const stranger = new HttpClient(service.admin.baseUrl, key['key']!);
    const path = keysOf(key['partner_id']!);
    expectProblem(await stranger.get(path), 401, 'unauthorized');
    expectProblem(await stranger.post(path, { mode: 'live' }), 401, 'unauthorized');
    expectProblem(await stranger.post(`${path}/${key['id']}/revoke`), 401, 'unauthorized');
    expectProblem(await stranger.post(`${path}/${key['id']}/rotate`), 401, 'unauthorized');
  });
});

it('audits a rotation for both keys, and never a key itself', async () => {
  const old = await create({ name: 'Audited' });
  const successor = (await rotate(old, { grace_seconds: 60 })).body.data;
  const audit = await service.admin.get(`/internal/v1/audit-log?partner_id=${old['partner_id']}`);
  expect(audit.body.data).toMatchObject([
    { action: 'api_key.created', subject_id: successor.id, details: { replaces: old['id'] } },
    {
      action: 'api_key.rotated',
      subject_id: old['id'],
      details: { replaced_by: successor.id, grace_seconds: 60 },
    },
    { action: 'api_key.created', subject_id: old['id'], details: { name: 'Audited', mode: 'sandbox' } },
    { action: 'partner.created' },
  ]);
  const { rows } = await service.database.pool.query('SELECT details::text FROM audit_log');
  const text = rows.map((row) => row.details).join();
  for (const key of [old['key']!, successor.key]) expect(text).not.toContain(key.slice(12));
});
