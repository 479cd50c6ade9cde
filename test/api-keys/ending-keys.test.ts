import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_ACTIVE_KEYS } from '../../src/api-keys/index.js';
import { expectProblem, inAnHour, KeyOffice, keysOf, type ShownKey } from './key-office.js';

const DAY_MS = 86_400_000;

let office: KeyOffice;

beforeAll(async () => {
  office = await KeyOffice.open();
});
afterAll(() => office.close());

describe('revoking a key', () => {
  it('refuses every call that starts after the response', async () => {
    for (let i = 0; i < 10; i++) {
      const key = await office.create();
      const api = office.service.partnerApi(key['key']!);
      expect((await api.get('/v1/me')).status).toBe(200);
      const answer = await office.revoke(key);
      expect([answer.status, answer.body.data.status]).toEqual([200, 'revoked']);
      const statuses = await Promise.all(
        Array.from({ length: 5 }, async () => (await api.get('/v1/me')).status),
      );
      expect(statuses).toEqual([401, 401, 401, 401, 401]);
    }
  });

  it('returns 200 both times and changes nothing the second time', async () => {
    const key = await office.create();
    const first = await office.revoke(key);
    const again = await office.revoke(key);
    expect(again.status).toBe(200);
    expect(again.body.data).toEqual(first.body.data);
    const audit = await office.service.admin.get(`/internal/v1/audit-log?subject_id=${key['id']}`);
    expect(audit.body.data.map((entry: { action: string }) => entry.action)).toEqual([
      'api_key.revoked',
      'api_key.created',
    ]);
  });
});

describe('rotating a key', () => {
  const terms = { name: 'Backend', allowed_cidrs: ['127.0.0.0/8'] };

  it('creates a successor with the same terms, and both work for a day', async () => {
    const expiresAt = new Date(Date.now() + 30 * DAY_MS).toISOString();
    const old = await office.create({ ...terms, mode: 'live', expires_at: expiresAt });
    const answer = await office.rotate(old);
    expect(answer.status).toBe(200);
    const successor = answer.body.data;
    expect(successor).toMatchObject({ ...terms, mode: 'live', expires_at: expiresAt, status: 'active' });
    expect(successor.id).not.toBe(old['id']);
    expect(await office.statusWith(old['key']!)).toBe(200);
    expect(await office.statusWith(successor.key)).toBe(200);
    const before = (await office.listed(old['partner_id']!)).find((key) => key['id'] === old['id'])!;
    expect(before).toMatchObject({ status: 'active', replaced_by: successor.id, revoked_at: null });
    expect(Date.parse(String(before['expires_at'])) - Date.now()).toBeGreaterThan(DAY_MS - 60_000);
    expect(Date.parse(String(before['expires_at'])) - Date.now()).toBeLessThan(DAY_MS + 60_000);
  });

  it('ends the old key at once with a grace of 0', async () => {
    const old = await office.create();
    const { key } = (await office.rotate(old, { grace_seconds: 0 })).body.data;
    expect(await office.statusWith(old['key']!)).toBe(401);
    expect(await office.statusWith(key)).toBe(200);
  });

  it('never extends the lifetime of the old key', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const old = await office.create({ expires_at: expiresAt });
    await office.rotate(old, { grace_seconds: 604_800 });
    const keys = await office.listed(old['partner_id']!);
    expect(keys.map((key) => key['expires_at'])).toEqual([expiresAt, expiresAt]);
  });

  it('allows revoking either key without the other', async () => {
    const old = await office.create();
    const successor = (await office.rotate(old)).body.data;
    await office.revoke(old);
    expect([await office.statusWith(old['key']!), await office.statusWith(successor.key)]).toEqual([
      401, 200,
    ]);
    const other = await office.create();
    const its = (await office.rotate(other)).body.data;
    await office.revoke(its);
    expect([await office.statusWith(other['key']!), await office.statusWith(its.key)]).toEqual([200, 401]);
  });

  it('returns 409 for a revoked, expired or already rotated key and creates no key', async () => {
    const revoked = await office.create();
    await office.revoke(revoked);
    const replaced = await office.create();
    await office.rotate(replaced);
    const expired = await office.create({ expires_at: inAnHour() });
    await office.letExpire(expired);
    for (const [key, total] of [
      [revoked, 1],
      [replaced, 2],
      [expired, 1],
    ] as const) {
      expectProblem(await office.rotate(key), 409, 'conflict');
      expect(await office.listed(key['partner_id']!)).toHaveLength(total);
    }
  });

  it('creates one successor for ten concurrent rotations', async () => {
    const old = await office.create();
    const answers = await Promise.all(Array.from({ length: 10 }, () => office.rotate(old)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, ...Array<number>(9).fill(409)]);
    expect(await office.listed(old['partner_id']!)).toHaveLength(2);
  });

  it('ends the key that the rotated one replaced, so that at most two keys per slot are valid', async () => {
    const first = await office.create();
    let newest: ShownKey = first;
    const made = [first];
    for (let i = 0; i < 20; i++) {
      newest = (await office.rotate(newest, { grace_seconds: 604_800 })).body.data as ShownKey;
      made.push(newest);
    }
    const statuses = await Promise.all(made.map(({ key }) => office.statusWith(key!)));
    expect(statuses).toEqual([...Array<number>(19).fill(401), 200, 200]);
    const listed = await office.listed(first['partner_id']!);
    expect(listed.filter(({ status }) => status === 'active')).toHaveLength(2);
    const audit = await office.service.admin.get(`/internal/v1/audit-log?subject_id=${first['id']}`);
    expect(audit.body.data[0]).toMatchObject({
      action: 'api_key.revoked',
      details: { reason: 'rotated_again' },
    });
  });

  it('keeps at most the newest ten replaced keys valid when successors are revoked', async () => {
    const owner = await office.newPartner();
    const replaced: ShownKey[] = [];
    for (let i = 0; i < MAX_ACTIVE_KEYS + 5; i++) {
      const key = await office.create({}, owner);
      const successor = (await office.rotate(key, { grace_seconds: 604_800 })).body.data as ShownKey;
      await office.revoke(successor);
      replaced.push(key);
    }
    const statuses = await Promise.all(replaced.map(({ key }) => office.statusWith(key!)));
    expect(statuses).toEqual([...Array<number>(5).fill(401), ...Array<number>(MAX_ACTIVE_KEYS).fill(200)]);
  });

  it('replays with key null', async () => {
    const old = await office.create();
    const path = `${keysOf(old['partner_id']!)}/${old['id']}/rotate`;
    const options = { idempotencyKey: 'rotate-once-01' };
    const first = await office.service.admin.post(path, {}, options);
    const again = await office.service.admin.post(path, {}, options);
    expect(again.body).toEqual({ ...first.body, data: { ...first.body.data, key: null } });
  });

  it.each([[-1], [604_801], [1.5], ['60'], [[60]]])('refuses a grace of %j', async (grace_seconds) => {
    const key = await office.create();
    expectProblem(await office.rotate(key, { grace_seconds }), 400, 'validation_failed');
    expect((await office.rotate(key, { grace_seconds: 604_800 })).status).toBe(200);
  });
});

it('audits a rotation for both keys and never records a key', async () => {
  const old = await office.create({ name: 'Audited' });
  const successor = (await office.rotate(old, { grace_seconds: 60 })).body.data;
  const audit = await office.service.admin.get(`/internal/v1/audit-log?partner_id=${old['partner_id']}`);
  // Both entries of a rotation may have the same millisecond, and then their order is undefined.
  const [first, second, ...before] = audit.body.data as { action: string }[];
  expect([first, second].sort((one, other) => one!.action.localeCompare(other!.action))).toMatchObject([
    { action: 'api_key.created', subject_id: successor.id, details: { replaces: old['id'] } },
    {
      action: 'api_key.rotated',
      subject_id: old['id'],
      details: { replaced_by: successor.id, grace_seconds: 60 },
    },
  ]);
  expect(before).toMatchObject([
    { action: 'api_key.created', subject_id: old['id'], details: { name: 'Audited', mode: 'sandbox' } },
    { action: 'partner.created' },
  ]);
  const { rows } = await office.service.database.pool.query('SELECT details::text FROM audit_log');
  const text = rows.map((row) => row.details).join();
  for (const key of [old['key']!, successor.key]) expect(text).not.toContain(key.slice(12));
});
