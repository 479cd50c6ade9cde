import 'reflect-metadata';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createDocuments, describeDrift } from './apps/openapi.js';

/** npm runs scripts in the project's folder. */
const DIRECTORY = path.resolve('docs/openapi');
const isCheck = process.argv.includes('--check');

for (const [port, document] of Object.entries(await createDocuments())) {
  const file = path.join(DIRECTORY, `${port}.json`);
  const name = path.relative(process.cwd(), file);
  if (isCheck) {
    const drift = describeDrift(readCommitted(file), document);
    for (const line of drift) console.error(`${name}: ${line}`);
    if (drift.length > 0) process.exitCode = 1;
    continue;
  }
  mkdirSync(DIRECTORY, { recursive: true });
  writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
  console.log(`${name}: ${Object.keys(document.paths).length} paths`);
}
if (process.exitCode === 1)
  console.error('the documents do not describe the code: run `npm run openapi` and commit');

function readCommitted(file: string): object {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as object;
  } catch {
    return {};
  }
}
