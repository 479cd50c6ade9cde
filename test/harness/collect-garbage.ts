import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Without it, memory measurements include garbage that is not collected yet. */
export const collectGarbage = runInNewContext('gc') as () => void;
