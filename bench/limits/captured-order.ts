import type { Cleanups } from '../cleanups.js';
import type { DatabaseServer } from '../service/database-server.js';
import type { BenchPartner } from '../service/partners.js';
import { ServiceProcess } from '../service/service-process.js';
import { readTransaction } from './captured-transaction.js';
import type { RawStatement } from './raw-transactions.js';

export const ORDERS_PATH = '/v1/orders';
/** Statements of the first calls are those of a cold process: the catalogue is loaded, the pool is filled. */
const CAPTURE_CALLS = 20;

export interface OrderCapture {
  readonly server: DatabaseServer;
  readonly database: string;
  readonly databaseUrl: string;
  /** The settings of the API that is measured. */
  readonly env: Readonly<Record<string, string>>;
  readonly partner: BenchPartner;
  readonly body: string;
}

/** Places a few orders through an API process of its own, whose statements the server logs: the transaction of one. */
export async function captureOrder(
  { server, database, databaseUrl, env, partner, body }: OrderCapture,
  cleanups: Cleanups,
): Promise<readonly RawStatement[]> {
  await server.query(`ALTER DATABASE ${database} SET log_statement = 'all'`);
  const api = cleanups.stopping(await ServiceProcess.start({ role: 'api', databaseUrl, env }));
  for (let call = 0; call < CAPTURE_CALLS; call++) await placeOne(api.apiUrl, partner.key, body);
  await api.stop();
  await server.query(`ALTER DATABASE ${database} RESET log_statement`);
  return readTransaction(server.statementLog, { database, table: 'INSERT INTO orders', owner: partner });
}

/** What the raw loop repeats, for the notes of a section. */
export function describeCaptured(statements: readonly RawStatement[]): string[] {
  return statements.map(({ text }) => `  ${oneLine(text)}`);
}

async function placeOne(baseUrl: string, key: string, body: string): Promise<void> {
  const answer = await fetch(baseUrl + ORDERS_PATH, {
    method: 'POST',
    body,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': crypto.randomUUID(),
    },
  });
  if (answer.status !== 202) throw new Error(`POST ${ORDERS_PATH}: ${answer.status} ${await answer.text()}`);
}

function oneLine(sql: string): string {
  const text = sql.replaceAll(/\s+/g, ' ').trim();
  return text.length > 140 ? `${text.slice(0, 137)}...` : text;
}
