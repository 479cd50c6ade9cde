import { once } from 'node:events';
import { Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  clientConfig,
  createDatabaseClient,
  createDataSource,
  poolOf,
  prepared,
  readWithin,
  ServerContact,
  sql,
  Transactions,
} from '../../../src/infra/database/index.js';
import { DatabaseProxy, type Lost } from '../../../chaos/database-proxy.js';
import { createTestDatabase, eventually, type TestDatabase } from '../../harness/index.js';
import { asServiceRole } from '../../harness/unusual-database.js';

/** These clients wait this long for a response, plus a margin of two seconds. */
const STATEMENT_TIMEOUT_MS = 1_000;
const APPLICATION = 'client-test';

let database: TestDatabase;
let proxy: DatabaseProxy;
let contact: ServerContact;
let closed: string[];

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query('CREATE TABLE noted (n int)');
});
beforeEach(async () => {
  proxy = await DatabaseProxy.start(asServiceRole(database.url));
  closed = [];
  contact = new ServerContact((error) => closed.push(error.message));
});
afterEach(() => proxy.stop());
afterAll(() => database.drop());

const settings = () => ({
  url: proxy.url,
  applicationName: APPLICATION,
  statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  connectTimeoutMs: 20_000,
  contact,
});

async function withPool(work: (pool: Pool) => Promise<void>): Promise<void> {
  // eslint-disable-next-line no-restricted-syntax -- with the options of the service's own pools
  const pool = new Pool({ ...clientConfig(settings()), max: 4 });
  pool.on('error', () => undefined);
  try {
    await work(pool);
  } finally {
    await pool.end();
  }
}

async function withDataSource(work: (dataSource: DataSource) => Promise<void>): Promise<void> {
  const dataSource = createDataSource({ ...settings(), poolMax: 4, poolWaitMs: 20_000, entities: [] });
  await dataSource.initialize();
  try {
    await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}

/** Opens `count` connections of the pool and releases them. */
async function warm(pool: Pool, count: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => pool.connect()));
  for (const client of clients) client.release();
}

/** The error code of `work`, which must fail. */
async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'no failure',
    (error: { code?: string; driverError?: { code?: string } }) => error.driverError?.code ?? error.code,
  );
}

const NOTE = 'INSERT INTO noted SELECT 1';

describe('a database connection', () => {
  it('starts with the required settings, whatever the role, database and URL say', async () => {
    const url = new URL(proxy.url);
    url.searchParams.set('options', '-c search_path=decoy -c work_mem=5MB');
    url.searchParams.set('application_name', 'somebody');
    url.searchParams.set('statement_timeout', '7');
    const client = createDatabaseClient({ ...settings(), url: url.href, lockTimeoutMs: 321 });
    await client.connect();
    const { rows } = await client.query<{ name: string; setting: string }>(
      `SELECT name, setting FROM pg_settings
       WHERE source = 'client' OR name IN ('work_mem', 'client_encoding', 'transaction_timeout')`,
    );
    const found = Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
    await client.end();
    expect(found).toMatchObject({
      DateStyle: 'ISO, MDY',
      TimeZone: 'UTC',
      IntervalStyle: 'postgres',
      bytea_output: 'hex',
      client_encoding: 'UTF8',
      array_nulls: 'on',
      extra_float_digits: '1',
      standard_conforming_strings: 'on',
      search_path: 'public',
      default_transaction_isolation: 'read committed',
      default_transaction_read_only: 'off',
      default_transaction_deferrable: 'off',
      enable_seqscan: 'off',
      jit: 'off',
      statement_timeout: String(STATEMENT_TIMEOUT_MS),
      lock_timeout: '321',
      transaction_timeout: '0',
      idle_session_timeout: '0',
      application_name: APPLICATION,
      work_mem: '5120',
    });
  });

  it.each<Lost>(['both', 'requests', 'answers'])(
    'is closed and replaced when nothing arrives for longer than the statement timeout: %s lost',
    async (lost) => {
      await withPool(async (pool) => {
        await warm(pool, 1);
        proxy.swallow(lost);
        const client = await pool.connect();
        expect(await failureOf(client.query(NOTE))).toBe('08006');
        // A library may release it without reporting the failure.
        client.release();
        expect(pool.totalCount).toBe(0);
        await pool.query('SELECT 1');
      });
    },
  );

  it('is closed when its responses drip in one byte at a time', async () => {
    await withPool(async (pool) => {
      await warm(pool, 1);
      proxy.drip(1);
      expect(await failureOf(pool.query(NOTE))).toBe('08006');
      await pool.query('SELECT 1');
    });
  });

  it('closes connections that have been silent for as long, and keeps those that have received data since', async () => {
    await withPool(async (pool) => {
      await warm(pool, 3);
      proxy.swallow();
      const young = createDatabaseClient(settings());
      await young.connect();
      const beat = setInterval(() => void young.query('SELECT 1').catch(() => undefined), 200);
      expect(await failureOf(pool.query('SELECT 1'))).toBe('08006');
      await eventually('the old ones are gone', () => pool.totalCount === 0);
      clearInterval(beat);
      await young.query('SELECT 1');
      await young.end();
      expect(closed).toHaveLength(3);
    });
  });

  it('fails a transaction whose responses are lost, and its retry runs on another connection', async () => {
    await withDataSource(async (dataSource) => {
      const transactions = new Transactions(dataSource);
      const note = prepared(NOTE);
      await transactions.run((tx) => sql(tx.manager, note));
      proxy.swallow('answers');
      expect(await failureOf(transactions.run((tx) => sql(tx.manager, note)))).toBe('08006');
      await transactions.run((tx) => sql(tx.manager, note));
      expect(poolOf(dataSource).totalCount).toBe(1);
    });
  });

  it('waits longer for a statement with a longer timeout', async () => {
    await withDataSource(async (dataSource) => {
      const answer = await readWithin(
        dataSource.manager,
        (manager) => manager.query<{ n: number }[]>('SELECT 1 AS n, pg_sleep(4.5)'),
        20_000,
      );
      expect(answer[0]!.n).toBe(1);
    });
    expect(closed).toEqual([]);
  });

  it('reports that it was lost even if it only listens', async () => {
    const client = createDatabaseClient(settings());
    await client.connect();
    await client.query('LISTEN something');
    proxy.swallow();
    const [error] = (await once(client, 'error')) as [Error & { code: string }];
    expect(error.code).toBe('08006');
  });

  it('closes the other connections of the process when its heartbeat gets no response', async () => {
    const working = createDatabaseClient({ ...settings(), statementTimeoutMs: 0 });
    const idle = createDatabaseClient({ ...settings(), hasHeartbeat: true });
    await Promise.all([working.connect(), idle.connect()]);
    const failed = failureOf(working.query('SELECT pg_sleep(60)'));
    proxy.swallow();
    expect(await failed).toBe('08006');
    expect(closed).toHaveLength(2);
  });

  it('ends although the server is unreachable', async () => {
    const client = createDatabaseClient(settings());
    await client.connect();
    proxy.swallow();
    await client.end();
  });

  it('is closed together with the idle connections once it is read-only, and the next connection can write', async () => {
    await withPool(async (pool) => {
      const clients = await Promise.all([1, 2, 3].map(() => pool.connect()));
      for (const client of clients) {
        await client.query('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY');
        client.release();
      }
      expect(await failureOf(pool.query(NOTE))).toBe('25006');
      await pool.query(NOTE);
      expect(closed).toHaveLength(3);
    });
  });

  it.each(['25006', '57P01', '57P02', '57P03', '08006', '08P01', 'XX000'])(
    'is not reused after %s, whoever releases it',
    async (code) => {
      await withDataSource(async (dataSource) => {
        const raise = `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`;
        expect(await failureOf(sql(dataSource.manager, raise))).toBe(code);
        expect(await failureOf(dataSource.query(raise))).toBe(code);
        const run = new Transactions(dataSource).run((tx) => sql(tx.manager, raise));
        expect(await failureOf(run)).toBe(code);
        expect(closed).toHaveLength(3);
      });
    },
  );

  it('is not reused after its prepared statements broke', async () => {
    await withDataSource(async (dataSource) => {
      const read = prepared('SELECT n FROM changing');
      const codes: unknown[] = [];
      const readAfter = async (change: () => Promise<unknown>): Promise<void> => {
        await sql(dataSource.manager, read);
        await change();
        codes.push(await failureOf(sql(dataSource.manager, read)));
        codes.push(await failureOf(sql(dataSource.manager, read)));
      };
      await database.pool.query('CREATE TABLE changing (n int)');
      await readAfter(() => database.pool.query('ALTER TABLE changing ALTER COLUMN n TYPE bigint'));
      await readAfter(() => dataSource.query('DEALLOCATE ALL'));
      const client = await poolOf(dataSource).connect();
      await client.query(`PREPARE taken AS SELECT 1`);
      codes.push(await failureOf(client.query({ name: 'taken', text: 'SELECT 2' })));
      client.release();
      expect(codes).toEqual(['0A000', 'no failure', '26000', 'no failure', '42P05']);
      expect(closed).toHaveLength(3);
    });
  });

  it('is kept after an error that concerns only the statement', async () => {
    await withDataSource(async (dataSource) => {
      expect(await failureOf(dataSource.query('SELECT 1/0'))).toBe('22012');
      expect(await failureOf(dataSource.query('SELECT none'))).toBe('42703');
    });
    expect(closed).toEqual([]);
  });

  it('is replaced after bytes that are not a protocol message', async () => {
    await withPool(async (pool) => {
      await warm(pool, 1);
      proxy.inject(Buffer.from('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
      const client = await pool.connect();
      expect(await failureOf(client.query('SELECT 1'))).toBe('08006');
      client.release();
      await pool.query('SELECT 1');
    });
  });

  it('is replaced after an unsolicited response', async () => {
    await withPool(async (pool) => {
      const client = await pool.connect();
      const failed = once(client, 'error');
      const row = Buffer.from([68, 0, 0, 0, 6, 0, 0]);
      proxy.inject(row);
      await failed;
      client.release();
      expect(pool.totalCount).toBe(0);
      await pool.query('SELECT 1');
    });
  });
});
