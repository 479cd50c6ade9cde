// Writes portal/src/api/types.gen.ts, the types of the portal's API, from its OpenAPI document. `--check`: only compares, and
// ends with exit code 1 when the committed file is another.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@hey-api/openapi-ts';

const root = path.resolve(import.meta.dirname, '..');
const target = path.join(root, 'portal/src/api/types.gen.ts');
const input = path.join(root, 'docs/openapi/portal.json');

const folder = mkdtempSync(path.join(tmpdir(), 'portal-types-'));
try {
  await createClient({
    input,
    output: { path: folder },
    plugins: ['@hey-api/typescript'],
    logs: { level: 'silent' },
  });
  const written = readFileSync(path.join(folder, 'types.gen.ts'), 'utf8');
  if (!process.argv.includes('--check')) {
    writeFileSync(target, written);
  } else if (written !== readFileSync(target, 'utf8')) {
    console.error(
      `${path.relative(root, target)} is not what the OpenAPI document says: npm run portal:types`,
    );
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}
