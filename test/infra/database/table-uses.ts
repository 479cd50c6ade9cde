import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../../..');

/** A table that the SQL of a source file names. */
export interface TableUse {
  /** Such as `src/orders/orders.repository.ts:60`. */
  readonly place: string;
  /** The folder below `src`. */
  readonly feature: string;
  readonly table: string;
  readonly access: 'reads' | 'writes';
}

/** Every table that a migration creates and none drops, partitions apart. */
export function migratedTables(): ReadonlySet<string> {
  const sources = sourcesOf('migrations');
  const dropped = sources.flatMap(({ text }) =>
    [...text.split('async down')[0]!.matchAll(/DROP TABLE ([a-z_, ]+)/g)].flatMap((match) =>
      match[1]!.split(', '),
    ),
  );
  const created = sources.flatMap(({ text }) =>
    [...text.matchAll(/CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([a-z_]+)\b(?! PARTITION OF)/g)].map(
      (match) => match[1]!,
    ),
  );
  return new Set(created.filter((table) => !dropped.includes(table)));
}

const WRITES = /\b(?:INSERT INTO|DELETE FROM|LOCK TABLE|TRUNCATE|UPDATE)\s+([a-z_]+)/g;
/** The tables after FROM, JOIN or USING; of a list as well, each with its alias. */
const READS =
  /\b(?:FROM|JOIN|USING)\s+([a-z_]+(?:(?:\s+AS)?\s+[a-z]\w*)?(?:\s*,\s*[a-z_]+(?:\s+[a-z]\w*)?)*)/g;
const DELETED = /\bDELETE\s+$/;

/** Every use of a known table in the SQL of `src`: written in upper case, as this repository does it. */
export function findTableUses(tables: ReadonlySet<string>): TableUse[] {
  return sourcesOf('src').flatMap(({ file, text }) => {
    const code = withoutComments(text);
    const use = (table: string, access: TableUse['access'], index: number): TableUse => ({
      place: `${file}:${code.slice(0, index).split('\n').length}`,
      feature: file.split('/')[1]!,
      table,
      access,
    });
    const written = [...code.matchAll(WRITES)].map((match) => use(match[1]!, 'writes', match.index));
    const read = [...code.matchAll(READS)]
      .filter((match) => !DELETED.test(code.slice(0, match.index)))
      .flatMap((match) => namesIn(match[1]!).map((table) => use(table, 'reads', match.index)));
    return [...written, ...read].filter(({ table }) => tables.has(table));
  });
}

/** `orders o, esims` names two tables. */
function namesIn(list: string): string[] {
  return list.split(',').map((item) => item.trim().split(/\s/)[0]!);
}

/** Comments become spaces, so that lines keep their numbers. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/g, (comment) => comment.replace(/[^\n]/g, ' '));
}

function sourcesOf(folder: string): { readonly file: string; readonly text: string }[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(folder, name))
    .map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }));
}
