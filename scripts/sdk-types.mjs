// Writes the types of the SDK from docs/openapi/partner.json; with --check it only compares. Usage: npm run sdk:types
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@hey-api/openapi-ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const TARGET = path.join(ROOT, 'sdk/src/generated/types.gen.ts');

async function generate() {
  const folder = mkdtempSync(path.join(tmpdir(), 'sdk-types-'));
  try {
    await createClient({
      input: path.join(ROOT, 'docs/openapi/partner.json'),
      output: { path: folder, tsConfigPath: null, postProcess: [] },
      plugins: ['@hey-api/typescript'],
      logs: { level: 'error' },
    });
    return readFileSync(path.join(folder, 'types.gen.ts'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const text = await generate();
if (process.argv.includes('--check')) {
  if (readFileSync(TARGET, 'utf8') !== text) {
    console.error(
      'sdk/src/generated/types.gen.ts is not what docs/openapi/partner.json says: npm run sdk:types',
    );
    process.exit(1);
  }
} else {
  writeFileSync(TARGET, text);
  console.log('sdk/src/generated/types.gen.ts');
}
