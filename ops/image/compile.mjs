// Writes the roles' compiled code into the folder that NODE_COMPILE_CACHE names at run time. It saves a third of a
// role's startup time, which a rolling release would take from other processes. Runs inside the image, with the roles'
// Node.js and user. `node compile.mjs <folder>`, next to dist/.
import { constants, enableCompileCache } from 'node:module';
import path from 'node:path';

const folder = process.argv[2];
if (folder === undefined) {
  console.error('usage: node compile.mjs <folder>');
  process.exit(1);
}
const { status, message = 'no reason given' } = enableCompileCache(path.resolve(folder));
// Fail here. Otherwise the image would silently ship without the cache.
if (status !== constants.compileCacheStatus.ENABLED)
  throw new Error(`the compile cache in ${folder} is not enabled: ${message}`);
// Every role loads this module, and importing it has no side effects.
await import('./dist/src/apps/role-process.js');
