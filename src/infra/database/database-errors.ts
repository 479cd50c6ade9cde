import { QueryFailedError } from 'typeorm';

/** The SQLSTATE of a PostgreSQL error, whether TypeORM wrapped it or not. */
export function sqlState(error: unknown): string | null {
  const source: unknown = error instanceof QueryFailedError ? error.driverError : error;
  const code = (source as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
}

/** The violated constraint's name when `error` is a unique violation, else null. */
export function violatedUniqueConstraint(error: unknown): string | null {
  if (sqlState(error) !== '23505') return null;
  const source: unknown = error instanceof QueryFailedError ? error.driverError : error;
  return (source as { constraint?: string }).constraint ?? '';
}

/** A waiter on a row lock gave up (`lock_timeout`). */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/**
 * A value that PostgreSQL does not take, or a violated constraint: one row's fault, not the connection's or the
 * server's (SQLSTATE classes 22 and 23). The statement has had no effect.
 */
export function isDataFault(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && state.length === 5 && (state.startsWith('22') || state.startsWith('23'));
}

const DEADLOCK = '40P01';
const SERIALIZATION_FAILURE = '40001';

/** The same transaction may succeed when it is run again (D40). */
export function isTransientConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === DEADLOCK || state === SERIALIZATION_FAILURE;
}
