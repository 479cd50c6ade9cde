import { type Backing, REDIS_DATABASES } from './backing-service.js';
import { onDatabase } from './database.js';
import { PgBouncer } from './pgbouncer.js';
import { startRedis } from './redis.js';
import { SESSION_SETTINGS } from '../../src/infra/database/database-client.js';
import { SERVICE_ROLE } from './unusual-database.js';

/**
 * Starts the backend that a test run requests, and returns a function that stops it.
 * @throws Error for an unknown name
 */
export async function startBacking(
  name: string,
  postgresUrl: string,
): Promise<{ readonly backing: Backing; readonly stop: () => Promise<void> }> {
  if (name === 'redis') {
    const redis = await startRedis({ databases: REDIS_DATABASES });
    return { backing: { kind: name, url: redis.url }, stop: () => redis.kill() };
  }
  if (name !== 'pgbouncer') throw new Error(`TEST_BACKING is redis or pgbouncer, not ${name}`);
  // docs/scaling.md requires these of a pooler, for single statements outside a transaction.
  const settings = {
    ...SESSION_SETTINGS,
    ...{ statement_timeout: '60s', lock_timeout: '5s' },
    ...{ idle_in_transaction_session_timeout: '10s', idle_session_timeout: '0' },
    transaction_timeout: '0',
  };
  const statements = Object.entries(settings).map(
    ([setting, value]) => `ALTER ROLE ${SERVICE_ROLE} SET ${setting} = '${value}'`,
  );
  await onDatabase(postgresUrl, statements.join('; '));
  const pooler = await PgBouncer.start(postgresUrl, { forAll: true });
  return { backing: { kind: name, url: pooler.url }, stop: () => pooler.stop() };
}
