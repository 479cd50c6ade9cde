import { createHash, randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  eventually,
  type HttpClient,
  startTestService,
  statusOver,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { expectProblem, withoutRequestId } from '../harness/expect-problem.js';
import { rawRequest } from '../harness/raw-http.js';

let service: TestService;
/** A second API process on the same database. */
let sibling: TestService;
/** A third API process, which trusts the proxy in front of it. */
let behindProxy: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  const role = { role: 'api', database: service.database } as const;
  sibling = await startTestService(role);
  behindProxy = await startTestService({ ...role, env: { TRUST_PROXY: '1' } });
  partner = await service.createPartner();
});

afterAll(async () => {
  agent.destroy();
  await Promise.all([sibling.stop(), behindProxy.stop()]);
  await service.stop();
});

interface Key {
  readonly id: string;
  readonly key: string;
}

const keysOf = (partnerId: string): string => `/internal/v1/partners/${partnerId}/api-keys`;

async function createKey(terms: object = {}, partnerId = partner.id): Promise<Key> {
  const answer = await service.admin.post(keysOf(partnerId), { mode: 'sandbox', ...terms });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data as Key;
}

async function revoke({ id }: Key): Promise<void> {
  expect((await service.admin.post(`${keysOf(partner.id)}/${id}/revoke`)).status).toBe(200);
}

async function rotate({ id }: Key, graceSeconds: number): Promise<Key> {
  const answer = await service.admin.post(`${keysOf(partner.id)}/${id}/rotate`, {
    grace_seconds: graceSeconds,
  });
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data as Key;
}

/** The statuses of one call to each of the two API processes. */
async function statuses({ key }: Pick<Key, 'key'>): Promise<number[]> {
  const answers = await Promise.all(
    [service, sibling].map((process) => process.partnerApi(key).get('/v1/me')),
  );
  return answers.map((answer) => answer.status);
}

const OK = [200, 200];
const UNAUTHORIZED = [401, 401];

describe('key expiry, rotation and revocation', () => {
  it('refuses a revoked key in every process from the very next call, also under load', async () => {
    for (let round = 0; round < 5; round++) {
      const doomed = await createKey();
      const others = Array.from({ length: 20 }, () => partner.sandbox.get('/v1/me'));
      expect(await statuses(doomed)).toEqual(OK);
      await revoke(doomed);
      expect(await statuses(doomed)).toEqual(UNAUTHORIZED);
      expect((await Promise.all(others)).every((answer) => answer.status === 200)).toBe(true);
    }
  });

  it('refuses an expired key in every process', async () => {
    const expiresAt = Date.now() + 10_000;
    const key = await createKey({ expires_at: new Date(expiresAt).toISOString() });
    expect(await statuses(key)).toEqual(OK);
    await eventually('expired', async () => (await statuses(key)).every((status) => status === 401));
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt - 50);
  });

  it('accepts the old key alongside its successor until the grace period ends', async () => {
    const old = await createKey();
    const rotatedAt = Date.now();
    const successor = await rotate(old, 10);
    expect(await statuses(old)).toEqual(OK);
    expect(await statuses(successor)).toEqual(OK);
    await eventually('the grace is over', async () =>
      (await statuses(old)).every((status) => status === 401),
    );
    expect(Date.now() - rotatedAt).toBeGreaterThanOrEqual(9_950);
    expect(await statuses(successor)).toEqual(OK);
    await revoke(successor);
  });

  it('refuses a key at once after a rotation without grace, and any key that is revoked during the grace period', async () => {
    const first = await createKey();
    const second = await rotate(first, 0);
    expect([await statuses(first), await statuses(second)]).toEqual([UNAUTHORIZED, OK]);
    const third = await rotate(second, 3_600);
    await revoke(second);
    expect([await statuses(second), await statuses(third)]).toEqual([UNAUTHORIZED, OK]);
    await revoke(third);
  });
});

describe('403', () => {
  const ORDER = { package_id: 'pkg_fr_1gb_7d' };

  it('refuses a suspended partner from the next call on, stores nothing, and lets accepted orders finish', async () => {
    const other = await service.createPartner('Suspended Travel');
    const accepted = await other.sandbox.post('/v1/orders', ORDER);
    const idempotencyKey = randomUUID();
    const status = (action: string) => service.admin.post(`/internal/v1/partners/${other.id}/${action}`);

    expect((await status('suspend')).status).toBe(200);
    for (const process of [service, sibling]) {
      const api = process.partnerApi(other.sandboxKey);
      const refused = await api.get('/v1/me');
      expectProblem(refused, 403, 'partner_suspended');
      expect(refused.headers.has('x-ratelimit-remaining')).toBe(true);
      expectProblem(await api.get('/v1/nothing-here'), 403, 'partner_suspended');
      expectProblem(await api.post('/v1/orders', ORDER, { idempotencyKey }), 403, 'partner_suspended');
    }
    await eventually('the accepted order is issued', () => isIssued(accepted.body.data.id));

    expect((await status('reinstate')).status).toBe(200);
    expect(await statuses({ key: other.sandboxKey })).toEqual(OK);
    const afterwards = await other.sandbox.post('/v1/orders', ORDER, { idempotencyKey });
    expect([afterwards.status, afterwards.headers.get('idempotent-replayed')]).toEqual([202, null]);
  });

  it('limits a key with an allow-list to its networks', async () => {
    const elsewhere = await createKey({ allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'] });
    for (const process of [service, sibling]) {
      const api = process.partnerApi(elsewhere.key);
      expectProblem(await api.get('/v1/me'), 403, 'ip_not_allowed');
      expectProblem(await api.post('/v1/orders', ORDER), 403, 'ip_not_allowed');
    }
    // D15: without TRUST_PROXY, no caller can claim another address.
    const claimed = await service
      .partnerApi(elsewhere.key)
      .get('/v1/me', { 'x-forwarded-for': '203.0.113.7' });
    expectProblem(claimed, 403, 'ip_not_allowed');
    const here = await createKey({ allowed_cidrs: ['203.0.113.0/24', '127.0.0.1'] });
    expect(await statuses(here)).toEqual(OK);
    for (const key of [elsewhere, here]) await revoke(key);
  });

  it('checks the address that a trusted proxy appended, with or without its port', async () => {
    const key = await createKey({ allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'] });
    const own = await createKey({ allowed_cidrs: ['127.0.0.0/8', '::/0'] });
    const statusFrom = async (key: string, forwarded: string): Promise<number> =>
      (await behindProxy.partnerApi(key).get('/v1/me', { 'x-forwarded-for': forwarded })).status;
    for (const forwarded of [
      '203.0.113.7',
      '203.0.113.7:5678',
      '[2001:db8::7]:443',
      '8.8.8.8, 203.0.113.7:1',
    ])
      expect([forwarded, await statusFrom(key.key, forwarded)]).toEqual([forwarded, 200]);
    for (const forwarded of ['8.8.8.8:5678', '203.0.113.7:1, 8.8.8.8', '[2001:db9::7]:443'])
      expect([forwarded, await statusFrom(key.key, forwarded)]).toEqual([forwarded, 403]);
    // The proxy's own address, 127.0.0.1, must not be used for such a caller.
    for (const forwarded of ['unknown', '', '203.0.113.7,', '[127.0.0.1]:80', '127.0.0.1:x'])
      expect([forwarded, await statusFrom(own.key, forwarded)]).toEqual([forwarded, 403]);
    for (const each of [key, own]) await revoke(each);
  });

  it.each(['activate', 'consume', 'expire'])(
    'refuses a live key on /v1/sandbox/…/%s with sandbox_only, whatever the id and body, and does not use the key',
    async (operation) => {
      const live = service.partnerApi(await service.createKey(partner.id, 'live'));
      const idempotencyKey = randomUUID();
      for (const id of ['esim_00000000000000000000000000', 'esim_x', 'anything']) {
        const path = `/v1/sandbox/esims/${id}/${operation}`;
        for (const body of [undefined, {}, { bytes: 'many' }]) {
          expectProblem(await live.post(path, body, { idempotencyKey }), 403, 'sandbox_only');
        }
      }
      const { rows } = await service.database.pool.query('SELECT 1 FROM idempotency_keys WHERE key = $1', [
        idempotencyKey,
      ]);
      expect(rows).toEqual([]);
      await expectKeyIsFree(live, idempotencyKey);
    },
  );

  /** Checks that no call has used the Idempotency-Key, because the response to a used key would be replayed. */
  async function expectKeyIsFree(live: HttpClient, idempotencyKey: string): Promise<void> {
    const path = '/v1/orders/ord_00000000000000000000000000/cancel';
    const first = await live.post(path, undefined, { idempotencyKey });
    expectProblem(first, 404, 'not_found');
    expect(first.headers.get('idempotent-replayed')).toBeNull();
  }

  async function isIssued(orderId: string): Promise<boolean> {
    const { rows } = await service.database.pool.query('SELECT status FROM orders WHERE id = $1', [orderId]);
    return rows[0].status === 'issued';
  }
});

describe('401', () => {
  const CORRECT_FORM = `svc_sk_test_${'A'.repeat(32)}`;

  it('is identical for missing, malformed, unknown, revoked and expired keys', async () => {
    const revoked = await createKey();
    await service.admin.post(`/internal/v1/partners/${partner.id}/api-keys/${revoked.id}/revoke`);
    const expired = await createKey();
    await service.database.pool.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [expired.id]);
    const tokens = [null, 'nonsense', CORRECT_FORM, `${CORRECT_FORM}x`, revoked.key, expired.key];
    const answers = await Promise.all(
      tokens.flatMap((token) =>
        [service, sibling].map((process) => process.partnerApi(token).get('/v1/orders')),
      ),
    );
    for (const answer of answers) {
      expectProblem(answer, 401, 'unauthorized');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    }
    expect(new Set(answers.map(withoutRequestId)).size).toBe(1);
    expect(new Set(answers.map(headerNames)).size).toBe(1);
  });

  it.each([
    ['no header', []],
    ['an empty value', ['']],
    ['the scheme alone', ['Bearer']],
    ['the scheme and a space', ['Bearer ']],
    ['two spaces', ['Bearer  KEY']],
    ['a tab', ['Bearer\tKEY']],
    ['another scheme', ['Basic KEY']],
    ['no scheme', ['KEY']],
    ['extra words', ['Bearer KEY KEY']],
    ['a comma-separated list', ['Bearer KEY, Bearer KEY']],
    ['two equal headers', ['Bearer KEY', 'Bearer KEY']],
    ['a valid header after a wrong one', ['Bearer x', 'Bearer KEY']],
    ['a wrong header after a valid one', ['Bearer KEY', '']],
  ])('is returned for %s', async (_name, values) => {
    const headers = values.map(
      (value) => ['Authorization', value.replaceAll('KEY', partner.sandboxKey)] as const,
    );
    expectProblem(await raw(headers), 401, 'unauthorized');
  });

  it.each(['bearer', 'BEARER', 'bEaReR'])('is not returned for the scheme spelled %s', async (scheme) => {
    expect((await raw([['authorization', `${scheme} ${partner.sandboxKey}`]])).status).toBe(200);
  });

  it('locks nobody out: the right key works after 60 wrong ones from the same address', async () => {
    const wrong = Array.from({ length: 60 }, () => service.partnerApi(CORRECT_FORM).get('/v1/me'));
    expect((await Promise.all(wrong)).every((answer) => answer.status === 401)).toBe(true);
    expect((await partner.sandbox.get('/v1/me')).status).toBe(200);
  });

  it('leaves only the SHA-256 of a key in the database', async () => {
    const { id, key } = await createKey();
    const { rows } = await service.database.pool.query('SELECT * FROM api_keys WHERE id = $1', [id]);
    expect(rows[0].hash).toEqual(createHash('sha256').update(key).digest());
    expect(JSON.stringify(rows)).not.toContain(key.slice(-32));
    const dumps = await Promise.all(
      ['idempotency_keys', 'audit_log', 'api_calls'].map((table) =>
        service.database.pool.query(`SELECT * FROM ${table}`),
      ),
    );
    expect(JSON.stringify(dumps.map((dump) => dump.rows))).not.toContain(key.slice(-32));
  });

  function raw(headers: readonly (readonly [string, string])[]): Promise<ApiAnswer> {
    return rawRequest(partner.sandbox.baseUrl, { path: '/v1/me', headers });
  }
});

function headerNames({ headers }: ApiAnswer): string {
  return [...headers.keys()].sort().join();
}

const agent = new Agent({ keepAlive: true });

/** The status of `GET /v1/me` as forwarded by a proxy. */
function callThroughProxy(key: string, forwardedFor: string): Promise<number> {
  const url = `${behindProxy.process.api!.url}/v1/me`;
  const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': forwardedFor };
  return statusOver(agent, url, headers);
}

const tally = (statuses: readonly number[]): Record<number, number> =>
  Object.fromEntries(
    [...new Set(statuses)].map((status) => [status, statuses.filter((one) => one === status).length]),
  );

describe('one call in a batch of concurrent calls (D43)', () => {
  it('does not fail the others when its address has a zone: 61 strangers alongside 50 calls by 5 partners', async () => {
    const partners = await Promise.all(Array.from({ length: 5 }, () => service.createPartner()));
    const unknownKey = `svc_${'sk'}_test_${'x'.repeat(32)}`;
    const strangers = Array.from({ length: 61 }, (_, nth) =>
      callThroughProxy(unknownKey, `fe80::${nth}%eth0`),
    );
    const others = Array.from({ length: 10 }, () =>
      partners.map(({ sandboxKey }) => callThroughProxy(sandboxKey, '203.0.113.7')),
    ).flat();
    expect(tally(await Promise.all(others))).toEqual({ 200: 50 });
    expect(tally(await Promise.all(strangers))).toEqual({ 401: 61 });
  });

  it('stores the address of a known key without its zone, and matches it against the allow-list', async () => {
    const { id } = await service.createPartner();
    const answer = await service.admin.post(`/internal/v1/partners/${id}/api-keys`, {
      mode: 'sandbox',
      allowed_cidrs: ['fe80::/10'],
    });
    const key = answer.body.data.key as string;
    expect(await callThroughProxy(key, 'fe80::1%eth0')).toBe(200);
    expect(await callThroughProxy(key, '2001:db8::1')).toBe(403);
    const row = await eventually('the row of the call', async () => {
      const { rows } = await service.database.pool.query<{ remote_address: string }>(
        'SELECT remote_address FROM api_calls WHERE partner_id = $1 AND status = 200',
        [id],
      );
      return rows[0];
    });
    expect(row.remote_address).toBe('fe80::1');
  });
});
