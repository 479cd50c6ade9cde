import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDataSource, Transactions } from '../../src/infra/database/index.js';
import { EsimPollsRepository, type PollBatch } from '../../src/esim-sync/esim-polls.repository.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';

const PROVIDER = 'upstream';
const LEASE_MS = 60_000;

let database: TestDatabase;
let dataSource: DataSource;
let polls: EsimPollsRepository;
let transactions: Transactions;

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await createDataSource({
    url: database.url,
    poolMax: 8,
    poolWaitMs: 20_000,
    entities: [],
    applicationName: 'test',
  }).initialize();
  polls = new EsimPollsRepository(dataSource.manager, { leaseMs: LEASE_MS });
  transactions = new Transactions(dataSource);
  await database.pool.query(`
    INSERT INTO partners (id, name) VALUES ('ptr_1', 'Test Travel');
    INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, unit_price_amount, currency, provider,
                        provider_reference, upstream_package_id, accepted_request_id, validity_days, activation_policy)
    VALUES ('ord_1', 'ptr_1', 'live', 'issued', 'pkg_1', 1, 100, 'USD', '${PROVIDER}', 'po_1', 'UP-1', 'req_1', 7,
      'on_first_use')`);
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});
beforeEach(() => database.pool.query('DELETE FROM esims'));

/**
 * Inserts `count` due eSIMs `e0`, `e1`, ... The i-th was issued `i` minutes after the first, and is due `i` seconds
 * before it.
 */
async function addDue(count: number, status = 'active'): Promise<void> {
  await database.pool.query(
    `INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, install_secrets,
       unlimited, usage_source, validity_days, activation_policy, provider, provider_esim_id, created_at, next_poll_at)
     SELECT 'e' || i, 'ptr_1', 'live', 'ord_1', 'pkg_1', '8985220000000000001', $2, 'enabled', '', true, 'poll', 7,
       'on_first_use', $3, 'u' || i, now() - interval '30 days' + i * interval '1 minute',
       now() - interval '1 hour' - i * interval '1 second'
     FROM generate_series(0, $1 - 1) AS i`,
    [count, status, PROVIDER],
  );
}

function claim(source: PollBatch['source'], limit = 10): Promise<PollBatch | null> {
  return polls.claim(source, { provider: PROVIDER, limit, timeoutMs: 0 });
}

function idsOf(batch: PollBatch | null): string[] {
  return (batch?.polls ?? []).map((poll) => poll.esimId).sort();
}

function hint(...upstreamIds: string[]): Promise<number> {
  return transactions.run((tx) => polls.hint(tx, PROVIDER, upstreamIds, 60_000));
}

describe('a poll claim', () => {
  it('reports the time of the last poll that learned nothing, ignoring a poll that was released', async () => {
    await addDue(1);
    const lookedInVain = async () => {
      await database.pool.query(`UPDATE esims SET next_poll_at = now(), poll_lease_until = NULL`);
      const batch = (await claim('poll'))!;
      return { batch, at: batch.polls[0]!.known?.lookedInVainAt ?? null };
    };
    const first = await lookedInVain();
    expect(first.at).toBeNull();
    const second = await lookedInVain();
    expect(second.at).toEqual(first.batch.askedAt);
    await database.pool.query('UPDATE esims SET read_at = $1', [second.batch.askedAt]);
    const third = await lookedInVain();
    expect(third.at).toBeNull();
    await polls.giveBack(third.batch, 0);
    expect((await lookedInVain()).at).toBeNull();
  });

  it('starts with the longest overdue eSIM, and adds its neighbors by time of issue', async () => {
    await addDue(30);
    await database.pool.query(`UPDATE esims SET next_poll_at = now() - interval '2 hours' WHERE id = 'e10'`);
    expect(idsOf(await claim('poll', 5))).toEqual(['e10', 'e11', 'e12', 'e8', 'e9']);
  });

  it('never gives one eSIM to two workers, and misses none', async () => {
    await addDue(200);
    const worker = async (): Promise<string[]> => {
      const mine: string[] = [];
      for (let misses = 0; misses < 20;) {
        const batch = await claim('poll');
        if (batch) mine.push(...idsOf(batch));
        else misses++;
      }
      return mine;
    };
    const all = (await Promise.all([worker(), worker(), worker(), worker()])).flat();
    expect(all).toHaveLength(200);
    expect(new Set(all).size).toBe(200);
  });

  it.each(['expired', 'canceled'])('skips an eSIM that is %s', async (status) => {
    await addDue(1, status);
    expect(await claim('poll')).toBeNull();
    expect(await hint('u0')).toBe(0);
    expect(await claim('callback')).toBeNull();
  });

  it('expires, and then the first worker can neither write nor schedule', async () => {
    await addDue(1);
    const first = (await claim('poll'))!;
    await database.pool.query('UPDATE esims SET poll_lease_until = now()');
    const second = (await claim('poll'))!;
    expect(idsOf(second)).toEqual(['e0']);
    await transactions.run(async (tx) => {
      expect([...(await polls.holdForUpdate(tx, first.polls))]).toEqual([]);
      await polls.schedule(tx, [{ poll: first.polls[0]!, delayMs: null }]);
      expect([...(await polls.holdForUpdate(tx, second.polls))]).toEqual(['e0']);
    });
    await polls.giveBack(first, 0);
    const { rows } = await database.pool.query('SELECT next_poll_at, poll_lease_until FROM esims');
    expect(rows[0].next_poll_at).not.toBeNull();
    expect(rows[0].poll_lease_until.getTime()).toBeGreaterThan(Date.now());
  });
});

describe('a hint', () => {
  it('is claimed before due polls, once however many hints there are', async () => {
    await addDue(3);
    expect(await hint('u1', 'nobody')).toBe(1);
    expect(await hint('u1')).toBe(0);
    expect(idsOf(await claim('callback'))).toEqual(['e1']);
    expect(await claim('callback')).toBeNull();
    expect(idsOf(await claim('poll'))).toEqual(['e0', 'e2']);
  });

  it('waits a minute from the claim when it arrives during a poll, and is not lost', async () => {
    await addDue(1);
    await hint('u0');
    const batch = (await claim('callback'))!;
    expect(await hint('u0')).toBe(1);
    await transactions.run((tx) => polls.schedule(tx, [{ poll: batch.polls[0]!, delayMs: 3_600_000 }]));
    expect(await claim('callback')).toBeNull();
    const { rows } = await database.pool.query<{ ms: number }>(
      'SELECT (extract(epoch FROM poll_hint_at - polled_at) * 1000)::float8 AS ms FROM esims',
    );
    expect(rows[0]!.ms).toBe(60_000);
    await database.pool.query(`UPDATE esims SET poll_hint_at = now()`);
    expect(idsOf(await claim('callback'))).toEqual(['e0']);
  });

  it('stays a hint when its reading failed, and becomes due when its worker died', async () => {
    await addDue(2);
    await hint('u0', 'u1');
    const batch = (await claim('callback', 1))!;
    await polls.giveBack(batch, 0);
    expect(idsOf(await claim('callback'))).toEqual(['e0', 'e1']);
    await database.pool.query('UPDATE esims SET poll_lease_until = now()');
    expect(idsOf(await claim('poll'))).toEqual(['e0', 'e1']);
  });

  it('does not match the eSIM of another provider', async () => {
    await addDue(1);
    expect(await transactions.run((tx) => polls.hint(tx, 'another', ['u0'], 0))).toBe(0);
  });
});
