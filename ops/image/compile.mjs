// Keeps the roles' compiled code in a folder that NODE_COMPILE_CACHE names at run time: a third of a role's start, which a
// rolling release takes from its neighbours. Runs inside the image, by the Node.js and the user that will run the roles.
// `node compile.mjs <folder>`, beside dist/.
import { constants, enableCompileCache } from 'node:module';
import path from 'node:path';

const folder = process.argv[2];
if (folder === undefined) {
  console.error('usage: node compile.mjs <folder>');
  process.exit(1);
}
const { status, message = 'no reason given' } = enableCompileCache(path.resolve(folder));
// Else the image would be built without it, and nobody would know.
if (status !== constants.compileCacheStatus.ENABLED)
  throw new Error(`nothing is kept in ${folder}: ${message}`);
// What every role loads, and nothing that runs.
await import('./dist/src/apps/role-process.js');
