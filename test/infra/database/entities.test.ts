import type { DataSource } from 'typeorm';
import type { ColumnMetadata } from 'typeorm/metadata/ColumnMetadata.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENTITIES } from '../../../src/apps/process-resources.js';
import { createDataSource } from '../../../src/infra/database/index.js';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';

interface TableColumn {
  readonly table: string;
  readonly name: string;
  /** PostgreSQL's name of the type, e.g. `timestamp with time zone`. */
  readonly type: string;
  readonly nullable: boolean;
}

/** Columns that only hand-written SQL uses, by table. */
const NOT_MAPPED: Readonly<Record<string, readonly string[]>> = {
  alerts: ['once_key'],
  catalog_syncs: [
    ...['lease_until', 'settings', 'worker_since', 'attempt'],
    ...['changes_after', 'changes_up_to', 'announced_to'],
  ],
  esims: ['poll_hint_at', 'polled_at', 'poll_lease_until', 'poll_fence'],
  ledger_transactions: ['wallet_id'],
  portal_sessions: ['code_hash', 'token_hash'],
  wallets: ['last_posted_at', 'created_at'],
  webhook_deliveries: [
    ...['test_body', 'counted_attempts', 'interruptions', 'started_fence'],
    ...['failed_at', 'replay_id'],
  ],
  webhook_backlog_jobs: ['discard_before', 'last_success_at', 'turn_at'],
};

let database: TestDatabase;
let source: DataSource;
let columns: readonly TableColumn[];

beforeAll(async () => {
  database = await createTestDatabase();
  const settings = { url: database.url, poolMax: 2, poolWaitMs: 20_000, applicationName: 'test' };
  source = await createDataSource({ ...settings, entities: [...ENTITIES] }).initialize();
  const { rows } = await database.pool.query<TableColumn>(
    `SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND a.attnum > 0 AND NOT a.attisdropped`,
  );
  columns = rows;
});

afterAll(async () => {
  await source.destroy();
  await database.drop();
});

function typeOf(column: ColumnMetadata): string {
  const type = source.driver.normalizeType(column);
  return column.isArray ? `${type}[]` : type;
}

describe('every entity', () => {
  it('omits only columns that exist', () => {
    const names = columns.map(({ table, name }) => `${table}.${name}`);
    const listed = Object.entries(NOT_MAPPED).flatMap(([table, own]) =>
      own.map((name) => `${table}.${name}`),
    );
    expect(listed.filter((name) => !names.includes(name))).toEqual([]);
  });

  it('has only columns of the migrated table, with the same definition', () => {
    const mapped = source.entityMetadatas.flatMap((entity) =>
      entity.columns
        .filter((column) => !column.isVirtualProperty)
        .map((column) => ({
          table: entity.tableName,
          name: column.databaseName,
          type: typeOf(column),
          nullable: column.isNullable,
        })),
    );
    expect(mapped.length).toBeGreaterThan(100);
    const migrated = new Map(columns.map((column) => [`${column.table}.${column.name}`, column]));
    const differences = mapped.flatMap((column) => {
      const inTable = migrated.get(`${column.table}.${column.name}`);
      return JSON.stringify(inTable) === JSON.stringify(column)
        ? []
        : [{ entity: column, table: inTable ?? null }];
    });
    expect(differences).toEqual([]);
  });

  it('has every column of its table, except those that only hand-written SQL uses', () => {
    const missing = source.entityMetadatas.flatMap((entity) => {
      const known = [...entity.columns.map((c) => c.databaseName), ...(NOT_MAPPED[entity.tableName] ?? [])];
      return columns
        .filter(({ table, name }) => table === entity.tableName && !known.includes(name))
        .map(({ table, name }) => `${table}.${name}`);
    });
    expect(missing).toEqual([]);
  });
});
