import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Without it the memory in use is what happens not to be collected yet. */
export const collectGarbage = runInNewContext('gc') as () => void;
