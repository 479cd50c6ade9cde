import { readFile } from 'node:fs/promises';
import type { Cleanups } from './child.js';
import type { DatabaseServer } from './database-server.js';
import { ORDER, ORDERS_PATH, sendOk } from './http.js';
import type { BenchPartner } from './partners.js';
import { ServiceProcess } from './service-process.js';

/** The ids of the caller, with their prefixes. */
export type Owner = Pick<BenchPartner, 'partnerId' | 'keyId'>;

export interface CapturedStatement {
  /** Of a prepared statement, else null. */
  readonly name: string | null;
  readonly text: string;
  /** Values. Between two marks stands the name of a value that each call fills in; null is NULL. */
  readonly parameters: readonly (string | null)[];
}

/** Stands in no value that PostgreSQL logs. */
export const MARK = '\u0001';
/** The first calls of a cold process load the catalog and fill the pool: their statements are others. */
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
 * Places a few orders through an API process of its own whose statements the server logs, and returns the transaction of
 * the last one. A POST is compared with the SQL that it runs today, so that SQL is read from the log and not written here.
 * @param env settings of the API that is measured
 * @throws Error when the log has no such transaction
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
  if (!transaction) throw new Error(`no transaction of an order in ${server.statementLog}`);
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

/** One line for each statement. */
export function describeCaptured(statements: readonly CapturedStatement[]): string[] {
  return statements.map(({ text }) => `  ${text.replaceAll(/\s+/g, ' ').trim().slice(0, 140)}`);
}

/** The part of an id after its prefix. */
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
  // `Parameters: $1 = 'a', $2 = NULL`; a quote inside is doubled.
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
