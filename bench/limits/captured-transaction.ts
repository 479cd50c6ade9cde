import { readFile } from 'node:fs/promises';
import {
  type FreshValue,
  type Owner,
  type OwnerValue,
  type ParameterTemplate,
  type RawStatement,
  withoutPrefix,
} from './raw-transactions.js';

/** One line of PostgreSQL's jsonlog, as far as the capture cares. */
interface LogLine {
  readonly session_id?: string;
  readonly dbname?: string;
  readonly message: string;
  readonly detail?: string;
}

const ULID = '[0-9A-HJKMNP-TV-Z]{26}';
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const ID = new RegExp(`(${ULID})|(${UUID})`, 'g');
const OWNER_FIELDS = ['partnerId', 'keyId'] as const;

/** What an id of the captured call stands for. */
type Value = FreshValue | OwnerValue;

/**
 * The last transaction in the server's log that touched `table`, ready to be repeated: the limit of a POST is
 * whatever SQL the POST runs today, so it is read off the wire and not written down here.
 * @param options.owner whose call it was; all other ids are new with every call
 * @throws Error when the log has no such transaction
 */
export async function readTransaction(
  logFile: string,
  options: { database: string; table: string; owner: Owner },
): Promise<readonly RawStatement[]> {
  const lines = (await readFile(logFile, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LogLine)
    .filter((line) => line.dbname === options.database);
  const transaction = transactionsOf(lines)
    .filter((candidate) => candidate.some((line) => line.message.includes(options.table)))
    .at(-1);
  if (!transaction) throw new Error(`no transaction with ${options.table} in ${logFile}`);
  const values = new Map<string, Value>(
    OWNER_FIELDS.map((field) => [withoutPrefix(options.owner[field]), { owner: field }]),
  );
  return transaction.map((line) => toStatement(line, values));
}

function transactionsOf(lines: readonly LogLine[]): LogLine[][] {
  const finished: LogLine[][] = [];
  const open = new Map<string, LogLine[]>();
  for (const line of lines) {
    const session = line.session_id ?? '';
    if (/^statement: (?:START TRANSACTION|BEGIN)/i.test(line.message)) open.set(session, []);
    open.get(session)?.push(line);
    if (!/^statement: COMMIT/i.test(line.message)) continue;
    const transaction = open.get(session);
    if (transaction) finished.push(transaction);
    open.delete(session);
  }
  return finished;
}

function toStatement({ message, detail }: LogLine, values: Map<string, Value>): RawStatement {
  const [, prepared, text] = /^(?:statement|execute (\S+)): ([^]*)$/.exec(message) ?? [];
  if (text === undefined) throw new Error(`not a statement: ${message}`);
  const name = prepared === undefined || prepared === '<unnamed>' ? null : prepared;
  return { name, text, parameters: parametersOf(detail).map((value) => toTemplate(value, values)) };
}

/** `Parameters: $1 = 'a', $2 = NULL`; a quote inside is doubled. */
function parametersOf(detail = ''): (string | null)[] {
  return [...detail.matchAll(/\$\d+ = (?:NULL|'((?:[^']|'')*)')/g)].map(
    ([, quoted]) => quoted?.replaceAll("''", "'") ?? null,
  );
}

function toTemplate(value: string | null, values: Map<string, Value>): ParameterTemplate {
  if (value === null) return null;
  const parts: (string | Value)[] = [];
  let from = 0;
  for (const match of value.matchAll(ID)) {
    const [found, asUlid] = match;
    const kind = asUlid === undefined ? 'uuid' : 'ulid';
    const known = values.get(found) ?? { slot: values.size, kind };
    values.set(found, known);
    parts.push(value.slice(from, match.index), known);
    from = match.index + found.length;
  }
  return [...parts, value.slice(from)];
}
