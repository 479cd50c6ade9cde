// Compares the OpenAPI documents with those of the last release (docs/openapi/released), and names each change that would
// break a program of a partner or of the portal team: `npm run api:changes`, exit code 1 when there is one. With `-- --release` what
// there is becomes what was released: on purpose, with an entry in CHANGELOG.md.
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { breakingChanges } from './api-changes/breaking-changes.mjs';

const folder = path.resolve(import.meta.dirname, '../docs/openapi');
const DOCUMENTS = ['partner.json', 'admin.json'];

if (process.argv.includes('--release')) {
  for (const name of DOCUMENTS) copyFileSync(path.join(folder, name), path.join(folder, 'released', name));
  console.log('released: docs/openapi/released');
  process.exit(0);
}

const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
let count = 0;
for (const name of DOCUMENTS) {
  for (const change of breakingChanges(
    read(path.join(folder, 'released', name)),
    read(path.join(folder, name)),
  )) {
    count += 1;
    console.log(`${name}: ${change}`);
  }
}
console.log(count === 0 ? 'no breaking change' : `${count} breaking changes (docs/guides/versioning.md)`);
process.exit(count === 0 ? 0 : 1);
