import { readFile } from 'node:fs/promises';
import type { Cleanups } from './child.js';
import type { DatabaseServer } from './database-server.js';
import { ORDER, ORDERS_PATH, sendOk } from './http.js';
import type { BenchPartner } from './partners.js';
import { ServiceProcess } from './service-process.js';

/** The caller's ids, with their prefixes. */
export type Owner = Pick<BenchPartner, 'partnerId' | 'keyId'>;

export interface CapturedStatement {
  /** Name of a prepared statement, or null. */
  readonly name: string | null;
  readonly text: string;
  /** Parameter values; null is NULL. A name between two `MARK`s is a placeholder that each call fills in. */
  readonly parameters: readonly (string | null)[];
}

/** Occurs in no value that PostgreSQL logs. */
export const MARK = '\u0001';
/** The first calls of a cold process load the catalog and fill the pool, so they run other statements. */
const CAPTURE_CALLS = 20;
const ULID = '[0-9A-HJKMNP-TV-Z]{26}';
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const ID = new RegExp(`(${ULID})|${UUID}`, 'g');

/** One line of PostgreSQL's jsonlog. */
interface LogLine {
  readonly session_id: string;
  readonly dbname?: string;
  readonly message: string;
  readonly detail?: string;
}

/**
 * Places a few orders through a separate API process, logs their statements, and returns the last order's transaction.
 * Reading the SQL from the log keeps the comparison in step with the code.
 * @param env settings of the measured API
 * @throws Error when the log contains no such transaction
 */
export async function captureOrder(
  { server, database, env, partner }: CaptureOptions,
  cleanups: Cleanups,
): Promise<readonly CapturedStatement[]> {
  await server.query(`ALTER DATABASE ${database} SET log_statement = 'all'`);
  const databaseUrl = server.url(database);
  const api = cleanups.stopping(await ServiceProcess.start({ role: 'api', databaseUrl, env }));
  for (let nth = 0; nth < CAPTURE_CALLS; nth++) await sendOk(api.apiUrl + ORDERS_PATH, partner.key, ORDER);
  await api.stop();
  await server.query(`ALTER DATABASE ${database} RESET log_statement`);
  const lines = (await readFile(server.statementLog, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LogLine)
    .filter(({ dbname }) => dbname === database);
  const transaction = transactionsOf(lines).findLast((candidate) =>
    candidate.some(({ message }) => message.includes('INSERT INTO orders')),
  );
  if (!transaction) throw new Error(`no order transaction in ${server.statementLog}`);
  const names = new Map([
    [withoutPrefix(partner.partnerId), 'partnerId'],
    [withoutPrefix(partner.keyId), 'keyId'],
  ]);
  return transaction.map((line) => toStatement(line, names));
}

export interface CaptureOptions {
  readonly server: DatabaseServer;
  readonly database: string;
  readonly env: Readonly<Record<string, string>>;
  readonly partner: BenchPartner;
}

/** One line per statement. */
export function describeCaptured(statements: readonly CapturedStatement[]): string[] {
  return statements.map(({ text }) => `  ${text.replaceAll(/\s+/g, ' ').trim().slice(0, 140)}`);
}

/** Removes an id's prefix. */
export function withoutPrefix(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}

function transactionsOf(lines: readonly LogLine[]): LogLine[][] {
  const finished: LogLine[][] = [];
  const open = new Map<string, LogLine[]>();
  for (const line of lines) {
    if (/^statement: (?:START TRANSACTION|BEGIN)/i.test(line.message)) open.set(line.session_id, []);
    const transaction = open.get(line.session_id);
    transaction?.push(line);
    if (!transaction || !/^statement: COMMIT/i.test(line.message)) continue;
    finished.push(transaction);
    open.delete(line.session_id);
  }
  return finished;
}

function toStatement({ message, detail = '' }: LogLine, names: Map<string, string>): CapturedStatement {
  const [, prepared, text] = /^(?:statement|execute (\S+)): ([^]*)$/.exec(message) ?? [];
  if (text === undefined) throw new Error(`not a statement: ${message}`);
  const name = prepared === undefined || prepared === '<unnamed>' ? null : prepared;
  // `Parameters: $1 = 'a', $2 = NULL`; quotes inside a value are doubled.
  const values = [...detail.matchAll(/\$\d+ = (?:NULL|'((?:[^']|'')*)')/g)].map(([, value]) => value);
  const parameters = values.map((value) => {
    if (value === undefined) return null;
    return value.replaceAll("''", "'").replaceAll(ID, (id: string, asUlid?: string) => {
      const known = names.get(id) ?? `${asUlid === undefined ? 'uuid' : 'ulid'} ${names.size}`;
      names.set(id, known);
      return `${MARK}${known}${MARK}`;
    });
  });
  return { name, text, parameters };
}
