// Assembles the content of the image: the compiled service, its production dependencies, the portal's pages and the
// OpenAPI documents, without compiler, tests or sources. The Dockerfile and ops/image/prove.mjs both call it, so the
// proof covers what ships. `node ops/image/assemble.mjs <folder>`, after the build.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const target = path.resolve(process.argv[2] ?? '');
if (process.argv[2] === undefined || existsSync(target)) {
  console.error('usage: node ops/image/assemble.mjs <folder that does not exist yet>');
  process.exit(1);
}
if (!existsSync(path.join(root, 'dist/src/main.api.js'))) {
  console.error('there is no build. Run npm run build first.');
  process.exit(1);
}

mkdirSync(target, { recursive: true });
const built = ['dist/src', 'dist/migrations', 'dist/portal', 'docs/openapi'];
for (const name of [
  'package.json',
  'package-lock.json',
  '.npmrc',
  ...built.filter((each) => existsSync(path.join(root, each))),
])
  cpSync(path.join(root, name), path.join(target, name), { recursive: true });
cpSync(path.join(import.meta.dirname, 'compile.mjs'), path.join(target, 'compile.mjs'));
execFileSync('npm', ['ci', '--omit=optional', '--omit=dev', '--no-audit', '--no-fund'], {
  cwd: target,
  stdio: 'inherit',
});
console.log(execFileSync('du', ['-sh', target], { encoding: 'utf8' }).trim());
