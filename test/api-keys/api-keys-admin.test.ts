import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseNetwork } from '../../src/infra/network/ip-address.js';
import { newId } from '../../src/common/ids.js';
import { type ApiAnswer, HttpClient } from '../harness/index.js';
import { expectProblem, inAnHour, KeyOffice, keysOf } from './key-office.js';

let office: KeyOffice;
let partnerId: string;

beforeAll(async () => {
  office = await KeyOffice.open();
  partnerId = await office.newPartner();
});
afterAll(() => office.close());

describe('creating a key', () => {
  it.each([
    ['sandbox', `svc_${'sk'}_test_`],
    ['live', `svc_${'sk'}_live_`],
  ])('shows a %s key once and stores its SHA-256', async (mode, prefix) => {
    const key = await office.create({ mode, name: 'Backend' });
    expect(key).toEqual({
      id: expect.stringMatching(/^key_[0-9A-HJKMNP-TV-Z]{26}$/),
      partner_id: expect.stringMatching(/^ptn_/),
      mode,
      name: 'Backend',
      prefix,
      last4: key['key']!.slice(-4),
      status: 'active',
      allowed_cidrs: null,
      scopes: null,
      spend_limit: null,
      expires_at: null,
      revoked_at: null,
      replaced_by: null,
      last_used_at: null,
      uses_24h: 0,
      created_by: 'portal',
      created_at: expect.stringMatching(/Z$/),
      key: expect.stringMatching(new RegExp(`^${prefix}[0-9A-Za-z]{32}$`)),
    });
    const { key: secret, ...shown } = key;
    expect(await office.listed(key['partner_id']!)).toEqual([shown]);
    const { rows } = await office.service.database.pool.query('SELECT * FROM api_keys WHERE id = $1', [
      key['id'],
    ]);
    expect(rows[0].hash.equals(createHash('sha256').update(secret!).digest())).toBe(true);
    expect(JSON.stringify(rows[0])).not.toContain(secret!.slice(prefix.length));
    expect(await office.statusWith(secret!)).toBe(200);
  });

  it('replays with key null and stores no body that contains the key', async () => {
    const options = { idempotencyKey: 'key-once-00001' };
    const first = await office.service.admin.post(keysOf(partnerId), { mode: 'live' }, options);
    const again = await office.service.admin.post(keysOf(partnerId), { mode: 'live' }, options);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
    expect(again.body).toEqual({ ...first.body, data: { ...first.body.data, key: null } });
    const { rows } = await office.service.database.pool.query('SELECT body FROM idempotency_keys');
    expect(rows.some((row) => row.body.includes(first.body.data.key))).toBe(false);
    await office.revoke(first.body.data);
  });

  it('accepts an expiry in the future and refuses calls after it', async () => {
    const key = await office.create({ expires_at: inAnHour() });
    expect(await office.statusWith(key['key']!)).toBe(200);
    await office.letExpire(key);
    expect((await office.listed(key['partner_id']!))[0]).toMatchObject({
      status: 'expired',
      revoked_at: null,
    });
  });

  it('restricts a key to its networks', async () => {
    const home = await office.create({ allowed_cidrs: ['127.0.0.1', '::1'] });
    expect(home.allowed_cidrs).toEqual(['127.0.0.1/32', '::1/128']);
    expect(await office.statusWith(home['key']!)).toBe(200);
    const away = await office.create({
      allowed_cidrs: ['203.0.113.0/24', '2001:DB8::/32', '203.0.113.0/24'],
    });
    expect(away.allowed_cidrs).toEqual(['203.0.113.0/24', '2001:db8::/32']);
    expectProblem(await office.service.partnerApi(away['key']!).get('/v1/me'), 403, 'ip_not_allowed');
  });

  it('accepts 50 networks, and PostgreSQL accepts every one of them', async () => {
    const networks = Array.from({ length: 46 }, (_, i) => `10.${i}.0.0/16`);
    const odd = ['0.0.0.0/0', '::/0', '64:ff9b::192.0.2.0/120', '2001:DB8:0:0:1::/80'];
    const key = await office.create({ allowed_cidrs: [...networks, ...odd] });
    expect(key.allowed_cidrs).toHaveLength(50);
    const { rows } = await office.service.database.pool.query(
      'SELECT array(SELECT x::cidr::text FROM unnest($1::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n) AS texts',
      [[...networks, ...odd].map(parseNetwork)],
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
    ['an empty list of networks', { mode: 'live', allowed_cidrs: [] }],
    ['51 networks', { mode: 'live', allowed_cidrs: Array.from({ length: 51 }, (_, i) => `10.0.0.${i}`) }],
    ['a host name as network', { mode: 'live', allowed_cidrs: ['example.com'] }],
    ['a network with host bits', { mode: 'live', allowed_cidrs: ['10.0.0.1/8'] }],
    ['null for a network', { mode: 'live', allowed_cidrs: [null] }],
    ['text instead of a list', { mode: 'live', allowed_cidrs: '10.0.0.0/8' }],
    ['a caller-chosen key', { mode: 'live', key: 'mine' }],
  ])('refuses %s', async (_, body) => {
    const answer = await office.service.admin.post(keysOf(partnerId), body);
    expectProblem(answer, 400, 'validation_failed');
    expect(answer.body.errors.length).toBeGreaterThan(0);
  });

  it('leaves the Idempotency-Key unused when the expiry is in the past', async () => {
    const options = { idempotencyKey: 'key-free-00001' };
    const owner = await office.newPartner();
    const past = { mode: 'live', expires_at: '2020-01-01T00:00:00Z' };
    expectProblem(await office.service.admin.post(keysOf(owner), past, options), 400, 'validation_failed');
    expect((await office.service.admin.post(keysOf(owner), { mode: 'live' }, options)).status).toBe(201);
  });
});

describe('the limit of 10 active keys', () => {
  it('is enforced exactly under 30 concurrent creations', async () => {
    const owner = await office.newPartner();
    // A busy machine may have no connection in time. It then returns 503 and changes nothing.
    const post = async (): Promise<ApiAnswer> => {
      const answer = await office.service.admin.post(keysOf(owner), { mode: 'sandbox' });
      return answer.status === 503 ? post() : answer;
    };
    const answers = await Promise.all(Array.from({ length: 30 }, post));
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(10);
    const refused = answers.filter((answer) => answer.status === 409);
    expect(refused.map((answer) => answer.body.code)).toEqual(Array(20).fill('limit_reached'));
    expect(await office.listed(owner)).toHaveLength(10);
  });

  it('counts each mode separately and ignores revoked and expired keys', async () => {
    const owner = await office.newPartner();
    const keys = [];
    for (let i = 0; i < 10; i++) keys.push(await office.create({ mode: 'live' }, owner));
    expectProblem(await office.service.admin.post(keysOf(owner), { mode: 'live' }), 409, 'limit_reached');
    await office.create({ mode: 'sandbox' }, owner);
    await office.revoke(keys[0]!);
    const short = await office.create({ mode: 'live', expires_at: inAnHour() }, owner);
    expectProblem(await office.service.admin.post(keysOf(owner), { mode: 'live' }), 409, 'limit_reached');
    await office.letExpire(short);
    await office.create({ mode: 'live' }, owner);
  });

  it('does not block a rotation, because the old key in its grace period does not count', async () => {
    const owner = await office.newPartner();
    const keys = [];
    for (let i = 0; i < 10; i++) keys.push(await office.create({}, owner));
    const rotated = await office.rotate(keys[0]!);
    expect(rotated.status).toBe(200);
    expect(await office.statusWith(keys[0]!['key']!)).toBe(200);
    expectProblem(await office.service.admin.post(keysOf(owner), { mode: 'sandbox' }), 409, 'limit_reached');
    await office.revoke(rotated.body.data);
    await office.create({}, owner);
  });
});

describe('key ownership', () => {
  it('returns the same 404 for unknown, malformed and foreign ids', async () => {
    const key = await office.create();
    const stranger = await office.newPartner();
    for (const owner of [stranger, newId('ptn'), 'ptn_1']) {
      for (const id of [key['id']!, newId('key'), 'key_1']) {
        if (owner === key['partner_id']) continue;
        for (const action of ['revoke', 'rotate']) {
          expectProblem(
            await office.service.admin.post(`${keysOf(owner)}/${id}/${action}`),
            404,
            'not_found',
          );
        }
      }
    }
    for (const owner of [newId('ptn'), 'ptn_1']) {
      expectProblem(await office.service.admin.get(keysOf(owner)), 404, 'not_found');
      expectProblem(await office.service.admin.post(keysOf(owner), { mode: 'live' }), 404, 'not_found');
    }
    expect(await office.statusWith(key['key']!)).toBe(200);
  });

  it('lists keys newest first, by mode, page by page', async () => {
    const owner = await office.newPartner();
    const ids: string[] = [];
    for (let i = 0; i < 4; i++)
      ids.unshift((await office.create({ mode: i === 1 ? 'live' : 'sandbox' }, owner))['id']!);
    const first = await office.service.admin.get(`${keysOf(owner)}?limit=3`);
    const second = await office.service.admin.get(
      `${keysOf(owner)}?limit=3&cursor=${first.body.next_cursor}`,
    );
    expect([...first.body.data, ...second.body.data].map((key) => key.id)).toEqual(ids);
    const live = await office.service.admin.get(`${keysOf(owner)}?mode=live`);
    expect(live.body.data.map((key: { id: string }) => key.id)).toEqual([ids[2]]);
    const elsewhere = await office.service.admin.get(
      `${keysOf(partnerId)}?limit=3&cursor=${first.body.next_cursor}`,
    );
    expectProblem(elsewhere, 400, 'invalid_cursor');
  });

  it('returns 401 without an admin token', async () => {
    const key = await office.create();
    const stranger = new HttpClient(office.service.admin.baseUrl, key['key']!);
    const path = keysOf(key['partner_id']!);
    expectProblem(await stranger.get(path), 401, 'unauthorized');
    expectProblem(await stranger.post(path, { mode: 'live' }), 401, 'unauthorized');
    expectProblem(await stranger.post(`${path}/${key['id']}/revoke`), 401, 'unauthorized');
    expectProblem(await stranger.post(`${path}/${key['id']}/rotate`), 401, 'unauthorized');
  });
});
