import type { MigrationInterface, QueryRunner } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../../migrations/index.js';
import { openForMigrations } from '../../../src/apps/migration.js';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';
import { faultsOf, statementsOf } from './migration-rules.js';

/** From this one on, migrations run alongside an active service. Earlier ones create a new database. */
const FIRST_BESIDE_A_SERVICE = 1_763_700_000_023;

/** Migrations that break a rule, and the reason why they do not block the service. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  RollUpWebhookAttempts1763700000030:
    'no release without it exists: whoever migrates past it makes a new database',
  OwnEndpoints1763700000060: 'no release without it exists: whoever migrates past it makes a new database',
  JoinBacklogJobs1763700000061: 'no release without it exists: whoever migrates past it makes a new database',
  IndexOpenDeliveries1763700000062:
    'no release without it exists: whoever migrates past it makes a new database',
  KeepWhatWasSold1763700000024: 'no release without it exists: whoever migrates past it makes a new database',
};

const numberOf = ({ name }: { readonly name: string }): number => Number(name.slice(-13));

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function migration(statement: string, transaction?: boolean): MigrationInterface & { transaction?: boolean } {
  return {
    up: async (runner: QueryRunner) => void (await runner.query(statement)),
    down: () => Promise.resolve(),
    ...(transaction === undefined ? {} : { transaction }),
  };
}

describe('an online migration', () => {
  const later = MIGRATIONS.filter(
    (each) => numberOf(each) >= FIRST_BESIDE_A_SERVICE && EXCEPTIONS[each.name] === undefined,
  );

  it.each(later.map((each) => [each.name, each] as const))(
    '%s does not block the running service',
    async (_name, Migration) => {
      const made = new Migration();
      expect((await statementsOf(made)).length).toBeGreaterThan(0);
      expect(await faultsOf(made)).toEqual([]);
    },
  );

  it('is listed in EXCEPTIONS only if it exists and breaks a rule', async () => {
    for (const name of Object.keys(EXCEPTIONS)) {
      const Migration = MIGRATIONS.find((each) => each.name === name);
      expect(await faultsOf(new Migration!()), name).not.toEqual([]);
    }
  });

  it.each([
    ['CREATE INDEX a ON orders (status)', 'CONCURRENTLY'],
    ['CREATE UNIQUE INDEX a ON orders (status) WHERE status IS NULL', 'CONCURRENTLY'],
    ['CREATE INDEX CONCURRENTLY a ON orders (status)', 'outside of a transaction'],
    ['DROP INDEX a', 'CONCURRENTLY'],
    ['ALTER TABLE orders ADD CONSTRAINT c CHECK (quantity > 0)', 'NOT VALID'],
    ['ALTER TABLE orders ADD COLUMN a int, ADD FOREIGN KEY (a) REFERENCES partners (id)', 'NOT VALID'],
    ['ALTER TABLE orders ADD COLUMN a text REFERENCES partners (id)', 'constraint of its own'],
    ['ALTER TABLE orders ADD COLUMN a text NOT NULL', 'constant default'],
    ['ALTER TABLE orders ADD COLUMN a text DEFAULT gen_random_uuid()', 'volatile'],
    ['ALTER TABLE orders ALTER COLUMN reference SET NOT NULL', 'SET NOT NULL'],
    ['ALTER TABLE orders ALTER COLUMN quantity TYPE bigint', 'new column'],
    ['ALTER TABLE orders DROP COLUMN quantity', 'one release later'],
    ['ALTER TABLE orders RENAME COLUMN quantity TO amount', 'one release later'],
    ['UPDATE orders SET quantity = 1', 'in batches'],
    ['WITH gone AS (DELETE FROM orders RETURNING id) SELECT 1', 'in batches'],
    ['INSERT INTO alerts (id) SELECT id FROM orders', 'in batches'],
    ['UPDATE orders SET quantity = 1 WHERE id IN (SELECT id FROM orders LIMIT 1000)', 'in batches'],
    ['LOCK TABLE orders', 'by hand'],
    ['DO $$ BEGIN UPDATE orders SET quantity = 1; END $$', 'DO block'],
    [
      'ALTER TABLE orders ADD CONSTRAINT c CHECK (quantity > 0) NOT VALID; ALTER TABLE orders VALIDATE CONSTRAINT c',
      'in a transaction after',
    ],
    ["ALTER TABLE orders ADD COLUMN a text GENERATED ALWAYS AS (lower('A')) STORED", 'generated'],
    ['ALTER TABLE orders ADD COLUMN a bigserial', 'serial'],
    ['DROP TABLE orders', 'one release later'],
    ['alter table orders drop column quantity', 'one release later'],
  ])('is refused: %s', async (statement, rule) => {
    const faults = await faultsOf(migration(statement));
    expect(faults.map((fault) => fault.rule).join()).toContain(rule);
  });

  it.each([
    ['CREATE TABLE news (id text PRIMARY KEY); CREATE INDEX news_id ON news (id)', true],
    ['ALTER TABLE orders ADD COLUMN a text', true],
    ['ALTER TABLE orders ADD COLUMN version int NOT NULL DEFAULT 1', true],
    ['ALTER TABLE orders ADD CONSTRAINT c CHECK (quantity > 0) NOT VALID', true],
    ['ALTER TABLE orders VALIDATE CONSTRAINT c', true],
    ['CREATE INDEX events_type ON ONLY events (type)', true],
    ['DO $$ BEGIN ALTER TABLE orders ADD COLUMN a text; END $$', true],
    [
      'ALTER TABLE orders ADD CONSTRAINT c CHECK (quantity > 0) NOT VALID; ALTER TABLE orders VALIDATE CONSTRAINT c',
      false,
    ],
    ['CREATE INDEX CONCURRENTLY a ON orders (status)', false],
    ['UPDATE orders SET quantity = 1 WHERE id IN (SELECT id FROM orders LIMIT 1000)', false],
    ['CREATE FUNCTION f () RETURNS int LANGUAGE sql AS $$ UPDATE orders SET quantity = 1; SELECT 1 $$', true],
  ])('is allowed: %s', async (statement, transaction) => {
    expect(await faultsOf(migration(statement, transaction))).toEqual([]);
  });

  it('gives up on a locked table before a queue forms behind it', async () => {
    const source = await openForMigrations(database.url);
    const reader = await database.pool.connect();
    await reader.query('BEGIN; SELECT 1 FROM orders');
    await expect(source.query('ALTER TABLE orders ADD COLUMN a text')).rejects.toThrow('lock timeout');
    expect(await source.query('SHOW lock_timeout')).toEqual([{ lock_timeout: '1s' }]);
    await reader.query('COMMIT');
    reader.release();
    await source.destroy();
  });
});
