import type { SchemaObject } from '@nestjs/swagger';
import type fc from 'fast-check';
import type { ReadOperation } from '../reader.js';
import type { Draft } from './draft.js';

/** One thing that can be done to a request. */
export type Mutation = fc.Arbitrary<(draft: Draft) => Draft>;

/** What the mutations of one operation need to know. */
export interface Ground {
  readonly operation: ReadOperation;
  /** The schema of the body, if the operation has one. */
  readonly body: SchemaObject | null;
  /** A token that is good. */
  readonly token: string;
  /** Well-formed ids that this caller does not have, by path parameter. */
  readonly foreignIds: Readonly<Record<string, readonly string[]>>;
  /** The methods of this path. */
  readonly methods: readonly string[];
}

/** The draft after one more mutation; what is expected of one alone does not hold for two. */
export function changed(
  draft: Draft,
  name: string,
  expected: readonly number[] | null,
  changes: Partial<Draft>,
): Draft {
  const isFirst = draft.mutations.length === 0;
  return { ...draft, ...changes, mutations: [...draft.mutations, name], expected: isFirst ? expected : null };
}
