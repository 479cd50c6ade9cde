import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A statement of a migration that blocks a running service, and the alternative. */
export interface Fault {
  readonly statement: string;
  readonly rule: string;
}

interface Rule {
  readonly name: string;
  /** A named group `table` limits the rule to tables that this migration does not create. */
  readonly pattern: RegExp;
  /** Matches when the statement is harmless. */
  readonly unless?: RegExp;
  /** The statement is harmless only outside a transaction. */
  readonly outsideTransaction?: boolean;
}

const NAME = '(?:ONLY\\s+)?(?<table>[a-z_]+)';
const ALTER = `^ALTER TABLE (?:IF EXISTS )?${NAME}\\b[^;]*?\\b`;

/** Statements that lock a filled table for long, or break the previous release while it still runs. */
const RULES: readonly Rule[] = [
  {
    name: 'build an index CONCURRENTLY, outside of a transaction (of a partitioned table: ON ONLY it, then of each partition)',
    pattern: new RegExp(`^CREATE (?:UNIQUE )?INDEX\\b.*?\\bON ${NAME}`, 'is'),
    unless: /\bCONCURRENTLY\b|\bON ONLY\b/i,
    outsideTransaction: true,
  },
  {
    name: 'drop an index CONCURRENTLY',
    pattern: /^DROP INDEX\b/i,
    unless: /\bCONCURRENTLY\b/i,
    outsideTransaction: true,
  },
  {
    name: 'add a constraint NOT VALID, and validate it in a statement of its own',
    pattern: new RegExp(`${ALTER}ADD (?:CONSTRAINT|CHECK|FOREIGN KEY|UNIQUE|PRIMARY KEY)\\b`, 'is'),
    unless: /\bNOT VALID\b|\bUSING INDEX\b/i,
  },
  {
    name: 'add a column without a constraint of its own, then the constraint NOT VALID',
    pattern: new RegExp(`${ALTER}ADD COLUMN [^,]*?\\b(?:CHECK|REFERENCES|UNIQUE|PRIMARY KEY)\\b`, 'is'),
  },
  {
    name: 'give a new column that is NOT NULL a constant default',
    pattern: new RegExp(`${ALTER}ADD COLUMN [^,]*?\\bNOT NULL\\b`, 'is'),
    unless:
      /\bNOT NULL DEFAULT (?:'[^']*'|[\d.]+|true|false|now\(\))|\bDEFAULT (?:'[^']*'|[\d.]+|true|false|now\(\))(?:::[a-z]+)? NOT NULL/i,
  },
  {
    name: 'no volatile default: it writes every row',
    pattern: new RegExp(
      `${ALTER}ADD COLUMN [^,]*?DEFAULT (?:random|gen_random_uuid|clock_timestamp|nextval)`,
      'is',
    ),
  },
  {
    name: 'SET NOT NULL reads the table under its lock: a CHECK that is NOT VALID, then VALIDATE',
    pattern: new RegExp(`${ALTER}SET NOT NULL`, 'is'),
  },
  {
    name: 'a generated column that is stored writes the table anew: a plain one, filled in batches',
    pattern: new RegExp(`${ALTER}ADD COLUMN [^,]*?\\bGENERATED ALWAYS AS \\(.*\\) STORED\\b`, 'is'),
  },
  {
    name: 'a serial writes the table anew: a plain column, filled in batches',
    pattern: new RegExp(`${ALTER}ADD COLUMN [^,]*?\\b(?:(?:small|big)?serial|IDENTITY)\\b`, 'is'),
  },
  { name: 'a new type writes the table anew: a new column', pattern: new RegExp(`${ALTER}TYPE\\b`, 'is') },
  {
    name: 'the release before still uses it: drop it one release later',
    pattern: new RegExp(`${ALTER}(?:DROP COLUMN|RENAME)\\b`, 'is'),
  },
  {
    name: 'the release before still uses the table: drop it one release later',
    pattern: /^DROP TABLE (?:IF EXISTS )?(?<table>[a-z_]+)/i,
  },
  {
    name: 'change rows in batches, each a transaction of its own (LIMIT, SKIP LOCKED)',
    pattern:
      /(?:^|\bAS \(\s*)(?:UPDATE|DELETE FROM)\s+(?:ONLY\s+)?(?<table>[a-z_]+)|^INSERT INTO (?<into>[a-z_]+)[^;]*\bSELECT\b/i,
    unless: /\bLIMIT\b/i,
    outsideTransaction: true,
  },
  {
    name: 'change no rows in a DO block: it is one transaction',
    pattern: /^DO\b.*\b(?:UPDATE|DELETE FROM|INSERT INTO)\s/is,
  },
  {
    name: 'lock no table by hand',
    pattern: /^(?:LOCK TABLE|TRUNCATE|VACUUM FULL|CLUSTER|REINDEX (?!.*CONCURRENTLY))/i,
  },
  {
    name: 'a materialised view is refreshed CONCURRENTLY',
    pattern: /^REFRESH MATERIALIZED VIEW/i,
    unless: /CONCURRENTLY/i,
  },
];

/** The statements of `migration.up`, collected without a database. */
export async function statementsOf(migration: MigrationInterface): Promise<readonly string[]> {
  const texts: string[] = [];
  const runner = { query: (text: string) => (texts.push(text), Promise.resolve([])) };
  await migration.up(runner as unknown as QueryRunner);
  return texts.flatMap(split);
}

/**
 * Removes comments and the bodies of functions, which do not run. The body of a DO block stays part of its statement.
 */
function split(text: string): string[] {
  const bodies: string[] = [];
  const kept = text
    .replace(/(\$[a-z_]*\$)[\s\S]*?\1/g, (body) => `$${bodies.push(body)}$`)
    .replace(/--[^\n]*/g, '');
  return kept
    .split(';')
    .map((statement) => statement.trim())
    .map((statement) =>
      /^DO\b/i.test(statement)
        ? statement.replace(/\$(\d+)\$/, (_, nth: string) => bodies[Number(nth) - 1]!)
        : statement,
    )
    .map((statement) => statement.replaceAll(/\s+/g, ' '))
    .filter((statement) => statement !== '');
}

/** The faults of a migration for a running service. Tables that it creates itself have no rows and no readers. */
export async function faultsOf(migration: MigrationInterface & { transaction?: boolean }): Promise<Fault[]> {
  const statements = await statementsOf(migration);
  const own = new Set(
    statements.flatMap(
      (statement) => /^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([a-z_]+)/i.exec(statement)?.[1] ?? [],
    ),
  );
  const isFree = migration.transaction === false;
  const faults = statements.flatMap((statement) =>
    RULES.filter((rule) => breaks(rule, statement, own, isFree)).map(({ name }) => ({
      statement,
      rule: name,
    })),
  );
  return isFree ? faults : [...faults, ...validatedUnderLock(statements)];
}

/** Adding a constraint takes a lock until the end of the transaction, which includes the validation scan. */
function validatedUnderLock(statements: readonly string[]): Fault[] {
  const added = statements.flatMap(
    (statement) => /\bADD CONSTRAINT (\w+)\b.*\bNOT VALID\b/is.exec(statement)?.[1] ?? [],
  );
  return statements
    .filter((statement) => added.includes(/\bVALIDATE CONSTRAINT (\w+)/i.exec(statement)?.[1] ?? ''))
    .map((statement) => ({
      statement,
      rule: 'validate a constraint in a transaction after the one that adds it',
    }));
}

function breaks(rule: Rule, statement: string, own: ReadonlySet<string>, isFree: boolean): boolean {
  const found = rule.pattern.exec(statement);
  if (!found) return false;
  const table = found.groups?.['table'] ?? found.groups?.['into'];
  if (table !== undefined && own.has(table)) return false;
  const isHarmless = rule.unless?.test(statement) ?? false;
  return !isHarmless || (rule.outsideTransaction === true && !isFree && !/\bON ONLY\b/i.test(statement));
}
