import type { DataSource } from 'typeorm';

type Query = (text: string) => Promise<readonly { readonly relkind: string }[]>;

/**
 * Nothing is released yet, so migrations 2, 5, 6 and 22 were changed where they stand: a database that an earlier state
 * of them made has all their names and another schema. Its table `events` has no partitions.
 * @throws Error when the database is such a one: no migration leads from there
 */
export async function refuseUnreleasedSchema(query: Query): Promise<void> {
  const rows = await query(`SELECT relkind::text FROM pg_class WHERE oid = to_regclass('events')`);
  if (rows.length === 0 || rows[0]!.relkind === 'p') return;
  throw new Error(
    'this database was made by an unreleased version, whose table `events` has no partitions, and cannot be upgraded: ' +
      'use an empty database (for `npm start` without DATABASE_URL, another DATA_DIR)',
  );
}

/** @throws Error when migrations are missing, or the database is one of an unreleased version */
export async function assertSchemaIsCurrent(dataSource: DataSource): Promise<void> {
  await refuseUnreleasedSchema((text) => dataSource.query(text));
  if (!(await dataSource.showMigrations())) return;
  throw new Error('the database schema is not current: run `npm run migrate` first');
}
