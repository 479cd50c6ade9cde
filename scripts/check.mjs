// Runs every check that needs no service, one per core at a time. Prints the output of failed checks, and exits with 1
// if there are any.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

// Longest first.
const CHECKS = {
  lint: 'eslint . --max-warnings 0',
  types: 'tsc --noEmit',
  'types of the portal': 'tsc -p portal',
  format: 'prettier --check .',
  'import direction': 'depcruise src migrations portal/src --config .dependency-cruiser.cjs',
  'generated files': 'node scripts/generate.mjs --check',
  prose: 'node scripts/prose.mjs',
  'breaking changes of the API': 'node scripts/api-changes.mjs',
};

function run(name, command) {
  return new Promise((resolve) => {
    const startedAt = performance.now();
    const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += bytes));
    child.on('close', (code) => {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
      console.log(`${code === 0 ? 'ok' : 'FAILED'}: ${name} (${seconds} s)`);
      if (code !== 0) console.log(`${command}\n${output}`);
      resolve(code === 0);
    });
  });
}

// The type checks of the examples need the packages' declarations.
const packages = await run('types of the packages', 'node scripts/build.mjs sdk cli');
const waiting = Object.entries(CHECKS);
async function work() {
  let ok = true;
  for (let next = waiting.shift(); next; next = waiting.shift()) ok = (await run(...next)) && ok;
  return ok;
}
const results = await Promise.all(Array.from({ length: availableParallelism() }, work));
process.exit(packages && results.every(Boolean) ? 0 : 1);
