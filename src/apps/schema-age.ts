import type { DataSource } from 'typeorm';

/** Facts that identify a database of an unreleased version. */
export interface SchemaAge {
  readonly is_partitioned: boolean;
  readonly is_ordered_by_language: boolean;
}

type Query = (text: string) => Promise<readonly SchemaAge[]>;

/** Detects a linguistic collation in the database's default order: byte order would sort `B` before `a`. */
const AGE = `
  SELECT c.relkind = 'p' AS is_partitioned,
         a.attcollation = '"default"'::regcollation AND 'a' < 'B' AS is_ordered_by_language
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'partner_id'
  WHERE c.oid = to_regclass('events')`;

/**
 * Detects a database of an unreleased version. Before the first release, migrations were edited in place, so such a
 * database has the same migration names but another schema. Its table `events` has no partitions, or its columns use
 * the database's collation, which breaks cursors unless it sorts by bytes.
 * @throws Error if the database has such a version, because no migration can upgrade it
 */
export async function refuseUnreleasedSchema(query: Query): Promise<void> {
  const [age] = await query(AGE);
  if (!age) return;
  const fault = age.is_partitioned
    ? age.is_ordered_by_language && 'whose columns are ordered by language'
    : 'whose table `events` has no partitions';
  if (!fault) return;
  throw new Error(
    `this database was created by an unreleased version, ${fault}, and cannot be upgraded: ` +
      'use an empty database (for `npm start` without DATABASE_URL, another DATA_DIR)',
  );
}

/** @throws Error when migrations are missing, or the database belongs to an unreleased version */
export async function assertSchemaIsCurrent(dataSource: DataSource): Promise<void> {
  await refuseUnreleasedSchema((text) => dataSource.query(text));
  if (!(await dataSource.showMigrations())) return;
  throw new Error('the database schema is not current: run `npm run migrate` first');
}
