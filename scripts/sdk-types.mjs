// Writes the types of the SDK from docs/openapi/partner.json; with --check it only compares. Usage: npm run sdk:types
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@hey-api/openapi-ts';
import { OpenApi } from './docs/open-api.mjs';

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

/** The codes of each operation are the names of its examples: every answer has the one schema `Problem`. */
function operations() {
  const api = new OpenApi(JSON.parse(readFileSync(DOCUMENT, 'utf8')));
  const line = (operation) => {
    const codes = new Set(api.errorsOf(operation).map(({ code }) => `'${code}'`));
    return `  readonly ${operation.operationId}: ${[...codes].join(' | ')};`;
  };
  return [
    '// Written by npm run sdk:types.',
    '',
    '/**',
    ' * The codes that each operation is documented to answer with, by its `operationId`. `isApiError(error)` does not know',
    ' * which operation an error is of: name the codes that you ask for.',
    ' */',
    'export interface CodesOf {',
    ...api.operations().map(line),
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
