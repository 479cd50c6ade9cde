// Writes the roles' compiled code into a folder that NODE_COMPILE_CACHE names at run time. It saves a third of a role's start,
// which a rolling release takes from other processes. Runs inside the image, with the Node.js and the user of the roles.
// `node compile.mjs <folder>`, beside dist/.
import { constants, enableCompileCache } from 'node:module';
import path from 'node:path';

const folder = process.argv[2];
if (folder === undefined) {
  console.error('usage: node compile.mjs <folder>');
  process.exit(1);
}
const { status, message = 'no reason given' } = enableCompileCache(path.resolve(folder));
// Otherwise the image would be built without the cache, and nobody would notice.
if (status !== constants.compileCacheStatus.ENABLED)
  throw new Error(`nothing is kept in ${folder}: ${message}`);
// Every role loads this module, and it runs nothing.
await import('./dist/src/apps/role-process.js');
