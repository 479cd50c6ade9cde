import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ApiKeyAuthRepository } from '../../src/auth/api-key-auth.repository.js';
import { ApiKeyAuthenticator } from '../../src/auth/api-key-authenticator.js';
import type { RedisBuckets } from '../../src/auth/redis-buckets.js';
import { newId } from '../../src/common/ids.js';
import { createTestDatabase, eventually, openPool, type TestDatabase } from '../harness/index.js';

const HERE = '203.0.113.7';
const ELSEWHERE = '198.51.100.1';

let database: TestDatabase;
let pool: Pool;
let repository: ApiKeyAuthRepository;
let keys: ApiKeyAuthenticator;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = openPool(database.url, 4);
  repository = new ApiKeyAuthRepository(pool);
  const noRedis = { available: false } as RedisBuckets;
  keys = new ApiKeyAuthenticator(repository, noRedis, { rateLimit: { perMinute: 60, burst: 5 } });
});

afterEach(() => {
  vi.restoreAllMocks();
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** Creates a key that is allowed from `HERE` and returns its hash. */
async function newKey(): Promise<Buffer> {
  const partnerId = newId('ptn');
  const hash = createHash('sha256').update(partnerId).digest();
  await database.pool.query(`INSERT INTO partners (id, name, status) VALUES ($1, 'Key owner', 'active')`, [
    partnerId,
  ]);
  await database.pool.query(
    `INSERT INTO api_keys (id, partner_id, mode, hash, last4, allowed_cidrs)
     VALUES ($1, $2, 'sandbox', $3, 'abcd', '{203.0.113.0/24}')`,
    [newId('key'), partnerId, hash],
  );
  return hash;
}

describe('concurrent key checks', () => {
  it('runs one statement for all keys of the same event loop turn', async () => {
    const statements = vi.spyOn(repository, 'checkAndCharge');
    const [a, b] = [await newKey(), await newKey()];
    const found = await Promise.all([
      keys.authenticate(a, HERE),
      keys.authenticate(b, HERE),
      keys.authenticate(a, HERE),
      keys.authenticate(Buffer.alloc(32), HERE),
    ]);
    expect(statements).toHaveBeenCalledTimes(1);
    expect(found.map((one) => one?.rate.headers['x-ratelimit-remaining'])).toEqual([
      '4',
      '4',
      '3',
      undefined,
    ]);
  });

  it('fails only the check whose address PostgreSQL rejects', async () => {
    const hashes = await Promise.all(Array.from({ length: 9 }, newKey));
    const checks = hashes.map((hash, nth) => keys.authenticate(hash, nth === 4 ? 'fe80::1%eth0' : HERE));
    const ends = await Promise.allSettled(checks);
    expect(ends.map(({ status }) => status)).toEqual([
      ...Array<string>(4).fill('fulfilled'),
      'rejected',
      ...Array<string>(4).fill('fulfilled'),
    ]);
    for (const end of ends) {
      if (end.status === 'fulfilled') expect(end.value?.rate.headers['x-ratelimit-remaining']).toBe('4');
      else expect(end.reason).toMatchObject({ code: '22P02' });
    }
  });

  it('fails all checks after one attempt when the database is down', async () => {
    const [a, b] = [await newKey(), await newKey()];
    const down = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const statements = vi.spyOn(repository, 'checkAndCharge').mockRejectedValue(down);
    const ends = await Promise.allSettled([keys.authenticate(a, HERE), keys.authenticate(b, HERE)]);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(statements).toHaveBeenCalledTimes(1);
  });

  it('charges a token even for an address that is not allowed (D45)', async () => {
    const key = await newKey();
    // No token is refilled between the two statements, however slow the machine is.
    const filling = new ApiKeyAuthenticator(repository, { available: false } as RedisBuckets, {
      rateLimit: { perMinute: 1, burst: 5 },
    });
    const [first, stranger, second] = await Promise.all([
      filling.authenticate(key, HERE),
      filling.authenticate(key, ELSEWHERE),
      filling.authenticate(key, HERE),
    ]);
    expect(stranger?.key.addressAllowed).toBe(false);
    const left = [first, stranger, second].map((one) => one?.rate.headers['x-ratelimit-remaining']);
    expect(left).toEqual(['4', '3', '2']);
    const burst = await Promise.all(Array.from({ length: 5 }, () => filling.authenticate(key, HERE)));
    expect(burst.map((one) => one?.rate.allowed)).toEqual([true, true, false, false, false]);
  });

  it('treats a bucket from a clock that was a day ahead as empty, and refills it normally (D21)', async () => {
    const key = await newKey();
    const slow = new ApiKeyAuthenticator(repository, { available: false } as RedisBuckets, {
      // One token every 100 ms.
      rateLimit: { perMinute: 600, burst: 5 },
    });
    await slow.authenticate(key, HERE);
    // The bucket's state after a call while the database's clock was a day ahead.
    await database.pool.query(
      `UPDATE rate_buckets b SET tat = tat + 86400000000
       FROM api_keys k WHERE k.id = b.key AND k.hash = $1`,
      [key],
    );
    const first = await slow.authenticate(key, HERE);
    expect(first?.rate).toMatchObject({ allowed: false, headers: { 'retry-after': '1' } });
    expect(Number(first!.rate.headers['x-ratelimit-reset'])).toBeLessThan(Date.now() / 1_000 + 60);
    await eventually('a token', async () => (await slow.authenticate(key, HERE))?.rate.allowed, 10_000);
  });
});
