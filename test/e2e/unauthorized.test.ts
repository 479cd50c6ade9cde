import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiAnswer, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { expectProblem, withoutRequestId } from '../harness/expect-problem.js';
import { rawRequest } from '../harness/raw-http.js';

let service: TestService;
/** A second API process on the same database. */
let sibling: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  sibling = await startTestService({ role: 'api', database: service.database });
  partner = await service.createPartner();
});

afterAll(async () => {
  await sibling.stop();
  await service.stop();
});

interface Key {
  readonly id: string;
  readonly key: string;
}

async function createKey(): Promise<Key> {
  const path = `/internal/v1/partners/${partner.id}/api-keys`;
  return (await service.admin.post(path, { mode: 'sandbox' })).body.data as Key;
}

describe('401', () => {
  const CORRECT_FORM = `svc_sk_test_${'A'.repeat(32)}`;

  it('is one and the same for missing, malformed, unknown, revoked and expired keys', async () => {
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
    ['nothing at all', []],
    ['an empty value', ['']],
    ['the scheme alone', ['Bearer']],
    ['the scheme and a space', ['Bearer ']],
    ['two spaces', ['Bearer  KEY']],
    ['a tab', ['Bearer\tKEY']],
    ['another scheme', ['Basic KEY']],
    ['no scheme', ['KEY']],
    ['more words', ['Bearer KEY KEY']],
    ['a list of two', ['Bearer KEY, Bearer KEY']],
    ['two equal headers', ['Bearer KEY', 'Bearer KEY']],
    ['a valid header after a wrong one', ['Bearer x', 'Bearer KEY']],
    ['a wrong header after a valid one', ['Bearer KEY', '']],
  ])('answers %s', async (_name, values) => {
    const headers = values.map(
      (value) => ['Authorization', value.replaceAll('KEY', partner.sandboxKey)] as const,
    );
    expectProblem(await raw(headers), 401, 'unauthorized');
  });

  it.each(['bearer', 'BEARER', 'bEaReR'])('is not given for the scheme written %s', async (scheme) => {
    expect((await raw([['authorization', `${scheme} ${partner.sandboxKey}`]])).status).toBe(200);
  });

  it('does not lock anybody out: after 60 wrong keys from this address the right one works', async () => {
    const wrong = Array.from({ length: 60 }, () => service.partnerApi(CORRECT_FORM).get('/v1/me'));
    expect((await Promise.all(wrong)).every((answer) => answer.status === 401)).toBe(true);
    expect((await partner.sandbox.get('/v1/me')).status).toBe(200);
  });

  it('is kept in no table with the key: only its SHA-256 is', async () => {
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
