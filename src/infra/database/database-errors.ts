import { QueryFailedError } from 'typeorm';

/** The SQLSTATE of a PostgreSQL error, whether TypeORM wrapped it or not. */
export function sqlState(error: unknown): string | null {
  const source: unknown = error instanceof QueryFailedError ? error.driverError : error;
  const code = (source as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
}

/** The violated constraint's name when `error` is a unique violation, otherwise null. */
export function violatedUniqueConstraint(error: unknown): string | null {
  if (sqlState(error) !== '23505') return null;
  const source: unknown = error instanceof QueryFailedError ? error.driverError : error;
  return (source as { constraint?: string }).constraint ?? '';
}

/** A waiter on a row lock gave up (`lock_timeout`). */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/** PostgreSQL canceled a statement that ran too long (`statement_timeout`), or an operator did. */
export function isStatementTimeout(error: unknown): boolean {
  return sqlState(error) === '57014';
}

/** The statement names a table that does not exist, or was dropped while it waited. */
export function isUndefinedTable(error: unknown): boolean {
  return sqlState(error) === '42P01';
}

/**
 * Whether one row may be at fault. True for any error that PostgreSQL reports about a statement, and for bugs in the
 * code that built it. False for lost or read-only sessions, and for servers that are stopping, out of resources or
 * resolving a conflict.
 */
export function mayBeOfOneRow(error: unknown): boolean {
  const state = sqlState(error);
  // Node's own codes, such as ECONNREFUSED and EPIPE, are not SQLSTATEs.
  if (state !== null && /^(?=.*\d)[0-9A-Z]{5}$/.test(state))
    return !/^(08|25006|25P0[34]|40|53|57|58)/.test(state);
  return error instanceof TypeError || error instanceof RangeError;
}

const DEADLOCK = '40P01';
const SERIALIZATION_FAILURE = '40001';

/** The same transaction may succeed on a retry (D40). */
export function isTransientConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === DEADLOCK || state === SERIALIZATION_FAILURE;
}
