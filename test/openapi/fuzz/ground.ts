import type { SchemaObject } from '@nestjs/swagger';
import type fc from 'fast-check';
import type { ReadOperation } from '../reader.js';
import type { Draft } from './draft.js';

/** One change to a request. */
export type Mutation = fc.Arbitrary<(draft: Draft) => Draft>;

/** Information that the mutations of one operation need. */
export interface Ground {
  readonly operation: ReadOperation;
  /** The schema of the body, if the operation has one. */
  readonly body: SchemaObject | null;
  /** A valid token. */
  readonly token: string;
  /** Well-formed ids that this caller may not see, by path parameter. */
  readonly foreignIds: Readonly<Record<string, readonly string[]>>;
  /** The methods of this path. */
  readonly methods: readonly string[];
}

/** Applies one more mutation. The expected statuses hold for a single mutation only. */
export function changed(
  draft: Draft,
  name: string,
  expected: readonly number[] | null,
  changes: Partial<Draft>,
): Draft {
  const isFirst = draft.mutations.length === 0;
  return { ...draft, ...changes, mutations: [...draft.mutations, name], expected: isFirst ? expected : null };
}
