import type { ReferenceObject, ResponseObject } from '@nestjs/swagger';
import { PROBLEM_CONTENT_TYPE } from '../../../../common/errors/index.js';
import type { DescribedOperation } from './operation.js';

interface Use {
  readonly described: DescribedOperation;
  readonly status: string;
  readonly response: ResponseObject;
}

/**
 * Moves the problems that several operations answer alike to the components, named after their codes. What only one
 * operation says stays where it is read.
 */
export function shareProblems(operations: readonly DescribedOperation[]): Record<string, ResponseObject> {
  const shared: Record<string, ResponseObject> = {};
  for (const [name, uses] of problemsByName(operations)) {
    if (uses.length < 2) continue;
    shared[name] = uses[0]!.response;
    for (const { described, status } of uses) {
      described.operation.responses[status] = { $ref: `#/components/responses/${name}` };
    }
  }
  return shared;
}

function problemsByName(operations: readonly DescribedOperation[]): Map<string, Use[]> {
  const uses = new Map<string, Use[]>();
  for (const described of operations) {
    for (const [status, response] of Object.entries(described.operation.responses)) {
      const name = nameOf(response);
      if (!response || '$ref' in response || name === null) continue;
      uses.set(name, [...(uses.get(name) ?? []), { described, status, response }]);
    }
  }
  return uses;
}

/** The same codes are described alike, but for the header that only a replayed answer has. */
function nameOf(response: ResponseObject | ReferenceObject | undefined): string | null {
  if (!response || '$ref' in response) return null;
  const codes = Object.keys(response.content?.[PROBLEM_CONTENT_TYPE]?.examples ?? {});
  if (codes.length === 0) return null;
  return codes.map(pascal).join('Or') + (response.headers?.['Idempotent-Replayed'] ? 'OnPost' : '');
}

function pascal(code: string): string {
  return code.replace(/(^|_)([a-z])/g, (_match, _before, letter: string) => letter.toUpperCase());
}
