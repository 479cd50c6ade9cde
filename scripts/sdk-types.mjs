// Writes the types of the SDK from docs/openapi/partner.json; with --check it only compares. Usage: npm run sdk:types
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@hey-api/openapi-ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const DOCUMENT = path.join(ROOT, 'docs/openapi/partner.json');
const FOLDER = 'sdk/src/generated';

async function types() {
  const folder = mkdtempSync(path.join(tmpdir(), 'sdk-types-'));
  try {
    await createClient({
      input: DOCUMENT,
      output: { path: folder, tsConfigPath: null, postProcess: [] },
      plugins: ['@hey-api/typescript'],
      logs: { level: 'error' },
    });
    return readFileSync(path.join(folder, 'types.gen.ts'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The generated types have no list of the operations, and TypeScript cannot make one of a module's types. */
function operations() {
  const { paths } = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
  const ids = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ operationId }) => operationId ?? []),
  );
  const typeOf = (id) => `Api.${id[0].toUpperCase()}${id.slice(1)}Errors`;
  return [
    '// Written by npm run sdk:types.',
    "import type * as Api from './types.gen.js';",
    '',
    '/** What each operation of the document can be refused with. */',
    'export interface OperationErrors {',
    ...ids.map((id) => `  ${id}: ${typeOf(id)};`),
    '}',
    '',
  ].join('\n');
}

const written = { 'types.gen.ts': await types(), 'operations.gen.ts': operations() };
for (const [name, text] of Object.entries(written)) {
  const file = path.join(FOLDER, name);
  const target = path.join(ROOT, file);
  if (!process.argv.includes('--check')) {
    writeFileSync(target, text);
    console.log(file);
  } else if (readFileSync(target, 'utf8') !== text) {
    console.error(`${file} is not what docs/openapi/partner.json says: npm run sdk:types`);
    process.exit(1);
  }
}
