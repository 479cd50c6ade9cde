import fc from 'fast-check';
import { bodyMutations } from './body-mutations.js';
import type { Ground, Mutation } from './ground.js';
import { headerMutations } from './header-mutations.js';
import { pathMutations, queryMutations } from './target-mutations.js';

/** All mutations of a valid request of the operation. */
export function mutationsOf(ground: Ground): Mutation {
  return fc.oneof(
    ...headerMutations(ground),
    ...queryMutations(ground),
    ...pathMutations(ground),
    ...(ground.operation.method === 'get' ? [] : bodyMutations(ground)),
  );
}
