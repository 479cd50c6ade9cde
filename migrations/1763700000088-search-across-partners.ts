import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from './build-indexes.js';

const BY_NAME = [
  { name: 'partners_by_name', on: 'partners (lower(name))' },
  { name: 'partners_by_email', on: 'partners (lower(email)) WHERE email IS NOT NULL' },
];
const BY_ICCID = [{ name: 'esims_of_iccid', on: 'esims (iccid, partner_id, mode)' }];
const BY_ICCID_BEFORE = [{ name: 'esims_by_iccid', on: 'esims (partner_id, mode, iccid)' }];

/**
 * Lets support find an eSIM, an order and a top-up of any partner. The indexes of ICCIDs and references get another
 * order of columns, because a second index would make each sale dearer.
 */
export class SearchAcrossPartners1763700000088 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await buildIndexes(runner, [...BY_NAME, ...BY_ICCID]);
    await dropIndexes(runner, BY_ICCID_BEFORE);
    for (const table of ['orders', 'topups'])
      await indexReferences(runner, table, 'reference, partner_id, mode');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['orders', 'topups'])
      await indexReferences(runner, table, 'partner_id, mode, reference');
    await buildIndexes(runner, BY_ICCID_BEFORE);
    await dropIndexes(runner, [...BY_NAME, ...BY_ICCID]);
  }
}

/**
 * Replaces the unique index of a table's references. One of the two indexes is always valid, also after an interruption,
 * and the name stays, because the service recognizes the violation by it.
 */
async function indexReferences(runner: QueryRunner, table: string, columns: string): Promise<void> {
  const [name, next] = [`${table}_reference`, `${table}_reference_next`];
  const found = (await runner.query(
    `SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('${next}')`,
  )) as { valid: boolean }[];
  await runner.query('SET lock_timeout = 0');
  // If an earlier attempt has built it, the old index may be invalid or dropped.
  if (found[0]?.valid !== true) {
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${next}`);
    await runner.query(
      `CREATE UNIQUE INDEX CONCURRENTLY ${next} ON ${table} (${columns}) WHERE reference IS NOT NULL`,
    );
  }
  await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  await runner.query('RESET lock_timeout');
  await runner.query(`ALTER INDEX ${next} RENAME TO ${name}`);
}
