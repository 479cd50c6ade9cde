import path from 'node:path';
import type { PoolClient } from 'pg';
import ts from 'typescript';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PROJECT_ROOT as ROOT } from '../../harness/child-process.js';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';

/** Statements that can be prepared. */
const PREPARABLE = /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\s/;

let database: TestDatabase;
/** Stays open during the migration, like the sessions of a running service. */
let session: PoolClient;
/** Source locations by the name of the prepared statement. */
const prepared = new Map<string, string>();

beforeAll(async () => {
  database = await createTestDatabase();
  session = await database.pool.connect();
});
afterAll(async () => {
  session.release();
  await database.drop();
});

it('prepares every raw statement of the source on the migrated schema', async () => {
  const skipped: string[] = [];
  const refused: string[] = [];
  for (const { place, texts } of findStatements()) {
    if ('dynamic' in texts) {
      skipped.push(`${place}: its text depends on ${texts.dynamic}`);
      continue;
    }
    for (const text of texts) {
      if (!PREPARABLE.test(text)) {
        skipped.push(`${place}: a command that cannot be prepared`);
        continue;
      }
      const name = `s${prepared.size}`;
      try {
        await session.query(`PREPARE ${name} AS ${text}`);
        prepared.set(name, place);
      } catch (error) {
        refused.push(`${place}: ${(error as Error).message}`);
      }
    }
  }
  console.warn(`prepared ${prepared.size} statements; not prepared:\n${skipped.join('\n')}`);
  expect(refused).toEqual([]);
  expect(prepared.size).toBeGreaterThan(80);
  // If this test cannot resolve a statement, a reader cannot either.
  expect(skipped.length).toBeLessThan(prepared.size / 3);
});

it('runs every prepared statement after a migration has added a column to each table', async () => {
  await addColumns();
  const refused: string[] = [];
  for (const [name, place] of prepared) {
    const message = await refusalOf(name);
    if (message !== null) refused.push(`${place}: ${message}`);
  }
  expect(refused).toEqual([]);
});

async function addColumns(): Promise<void> {
  const { rows: tables } = await database.pool.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`,
  );
  for (const { name } of tables) await database.pool.query(`ALTER TABLE ${name} ADD COLUMN added int`);
}

/** PostgreSQL's error when it plans the statement again. EXPLAIN runs nothing. */
async function refusalOf(name: string): Promise<string | null> {
  const { rows } = await session.query<{ count: number }>(
    'SELECT coalesce(array_length(parameter_types, 1), 0) AS count FROM pg_prepared_statements WHERE name = $1',
    [name],
  );
  const parameters = Array(rows[0]!.count).fill('NULL').join(', ');
  try {
    await session.query(`EXPLAIN EXECUTE ${name} ${parameters && `(${parameters})`}`);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Raw SQL in the source. */
interface SourceStatement {
  /** E.g. `src/orders/orders.repository.ts:60`. */
  readonly place: string;
  /** All possible texts, or the expression whose value is only known at runtime. */
  readonly texts: readonly string[] | { readonly dynamic: string };
}

/** Uppercase, as this repository writes SQL, which distinguishes it from prose. */
const SQL =
  /^\s*(WITH|SELECT|INSERT INTO|UPDATE|DELETE FROM|LOCK TABLE|CREATE|DROP|ALTER|SET LOCAL|TRUNCATE)\s/;
const MAX_TEXTS = 64;

class Dynamic extends Error {}

/** The initializers of constants that templates use. */
const partsOfOthers = new Set<ts.Node>();

/** All strings of `src` that start like SQL, with their constants inserted. */
function findStatements(): SourceStatement[] {
  const { config } = ts.readConfigFile(path.join(ROOT, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: { compilerOptions: Record<string, unknown> };
  };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const files = ts.sys.readDirectory(path.join(ROOT, 'src'), ['.ts']);
  const program = ts.createProgram(files, { ...options, types: [], noEmit: true }, hostOf(options));
  const checker = program.getTypeChecker();
  partsOfOthers.clear();
  const found = program
    .getSourceFiles()
    .filter(({ fileName }) => files.includes(fileName))
    .flatMap((file) => statementsOf(file, checker));
  // A fragment of another statement need not be a statement.
  return found.filter(({ node }) => !partsOfOthers.has(node));
}

/** Resolves only imports within our own sources, because library types are most of a program and contain no SQL. */
function hostOf(options: ts.CompilerOptions): ts.CompilerHost {
  const resolve = (name: string, importer: string): ts.ResolvedModuleFull | undefined => {
    if (!name.startsWith('.')) return undefined;
    const resolvedFileName = path.resolve(path.dirname(importer), name).replace(/\.js$/, '.ts');
    return { resolvedFileName, extension: ts.Extension.Ts };
  };
  return {
    ...ts.createCompilerHost(options),
    resolveModuleNameLiterals: (literals, importer) =>
      literals.map(({ text }) => ({ resolvedModule: resolve(text, importer) })),
  };
}

function statementsOf(
  file: ts.SourceFile,
  checker: ts.TypeChecker,
): (SourceStatement & { readonly node: ts.Node })[] {
  const found: (SourceStatement & { readonly node: ts.Node })[] = [];
  const visit = (node: ts.Node): void => {
    if (isText(node) && SQL.test(beginOf(node))) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart());
      found.push({
        node,
        place: `${path.relative(ROOT, file.fileName)}:${line + 1}`,
        texts: textsOf(node, checker),
      });
    } else ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const isText = (node: ts.Node): node is ts.StringLiteral | ts.TemplateLiteral =>
  ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node);

const beginOf = (node: ts.StringLiteral | ts.TemplateLiteral): string =>
  ts.isTemplateExpression(node) ? node.head.text + 'x' : node.text;

function textsOf(node: ts.Expression, checker: ts.TypeChecker): SourceStatement['texts'] {
  try {
    return valuesOf(node, checker);
  } catch (error) {
    if (error instanceof Dynamic) return { dynamic: error.message };
    throw error;
  }
}

/**
 * All possible texts of a constant expression.
 * @throws Dynamic
 */
function valuesOf(node: ts.Expression, checker: ts.TypeChecker): string[] {
  if (ts.isStringLiteralLike(node) || ts.isNumericLiteral(node))
    return [node.text.replaceAll('_', ts.isNumericLiteral(node) ? '' : '_')];
  if (ts.isTemplateExpression(node)) return templateValues(node, checker);
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node))
    return valuesOf(node.expression, checker);
  if (ts.isConditionalExpression(node))
    return [...valuesOf(node.whenTrue, checker), ...valuesOf(node.whenFalse, checker)];
  return initialOf(node, checker) ?? literalsOf(node, checker);
}

function templateValues(node: ts.TemplateExpression, checker: ts.TypeChecker): string[] {
  let texts = [node.head.text];
  for (const { expression, literal } of node.templateSpans) {
    const values = valuesOf(expression, checker);
    texts = texts.flatMap((text) => values.map((value) => text + value + literal.text));
    if (texts.length > MAX_TEXTS) throw new Dynamic('too many texts');
  }
  return texts;
}

/** The values of a `const` or of a `readonly` property with a single assignment. */
function initialOf(node: ts.Expression, checker: ts.TypeChecker): string[] | null {
  let symbol = checker.getSymbolAtLocation(node);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  const declaration = symbol?.valueDeclaration;
  if (!declaration || !ts.isVariableDeclaration(declaration) || !declaration.initializer) return null;
  if ((ts.getCombinedNodeFlags(declaration) & ts.NodeFlags.Const) === 0) return null;
  partsOfOthers.add(declaration.initializer);
  return valuesOf(declaration.initializer, checker);
}

/**
 * The members of a union of literals.
 * @throws Dynamic
 */
function literalsOf(node: ts.Expression, checker: ts.TypeChecker): string[] {
  const type = checker.getTypeAtLocation(node);
  const members = type.isUnion() ? type.types : [type];
  return members.map((member) => {
    if (member.isStringLiteral() || member.isNumberLiteral()) return String(member.value);
    throw new Dynamic(node.getText());
  });
}
