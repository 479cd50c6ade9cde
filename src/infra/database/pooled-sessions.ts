import type { DataSource, QueryRunner } from 'typeorm';
import { type DatabaseClientSettings, SESSION_SETTINGS, settingsOfTransaction } from './database-client.js';
import { prepared, type PreparedStatement } from './sql.js';

/** A statement and its parameters, as `send` takes them. */
type Prelude = readonly [statement: PreparedStatement, parameters: readonly string[]];

const preludes = new WeakMap<DataSource, Prelude>();

/**
 * Behind a pooler in transaction mode, which hands each transaction another session: from now on every transaction on
 * this DataSource makes the settings of its own. `Transactions.run` does, and TypeORM's are made to.
 */
export function setInTransactions(dataSource: DataSource, settings: DatabaseClientSettings): void {
  const pairs = settingsOfTransaction(settings);
  const calls = pairs.map(([name], index) => `set_config('${name}', $${index + 1}, true)`);
  const prelude: Prelude = [prepared(`SELECT ${calls.join(', ')}`), pairs.map(([, value]) => value)];
  preludes.set(dataSource, prelude);
  const createRunner = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (mode) => preceded(createRunner(mode), prelude);
}

function preceded(runner: QueryRunner, [{ text }, parameters]: Prelude): QueryRunner {
  const start = runner.startTransaction.bind(runner);
  runner.startTransaction = async (isolation) => {
    const isNested = runner.isTransactionActive;
    await start(isolation);
    if (!isNested) await runner.query(text, [...parameters]);
  };
  return runner;
}

/** What a transaction sends first; null where the sessions have their own settings. */
export function preludeOf(dataSource: DataSource): Prelude | null {
  return preludes.get(dataSource) ?? null;
}

/**
 * Statements outside of a transaction find what the pooler's sessions began with: a start on others would read values
 * of another form, or fail much later.
 * @throws Error that names each setting and the statement that mends it
 */
export async function assertPooledSettings(dataSource: DataSource): Promise<void> {
  const wanted = Object.entries(SESSION_SETTINGS).filter(([name]) => name !== 'search_path');
  const found = await dataSource.query<{ name: string; setting: string }[]>(
    'SELECT name, setting FROM pg_settings WHERE name = ANY ($1)',
    [wanted.map(([name]) => name)],
  );
  const [{ is_public: isPublic }] = await dataSource.query<[{ is_public: boolean }]>(
    `SELECT to_regclass('orders') IS NOT DISTINCT FROM to_regclass('public.orders') AS is_public`,
  );
  const mistaken = wanted.filter(([name, value]) =>
    found.some((each) => each.name === name && each.setting !== value),
  );
  if (!isPublic) mistaken.push(['search_path', SESSION_SETTINGS['search_path']!]);
  if (mistaken.length === 0) return;
  const statements = mistaken.map(([name, value]) => `ALTER ROLE CURRENT_USER SET ${name} = '${value}';`);
  throw new Error(
    'the sessions behind the pooler begin with settings that the service cannot work with: ' +
      `run ${statements.join(' ')} as its role, then make the pooler connect again (RECONNECT in PgBouncer)`,
  );
}
