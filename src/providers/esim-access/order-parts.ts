import type { ProviderFailure, ProviderOrderParts, ProviderProfile } from '../esim-provider.js';
import { asObject, ProviderResponseInvalid, textAt } from '../http/index.js';
import { isAllocating, statusOf, toProfile, toQueriedEsim } from './queried-esim.js';

export const TAKEN_BACK: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The upstream took eSIMs of the order back.',
};

/** What the eSIMs of an order, as the wire has them, are to somebody who has to end it by hand. */
export function toParts(values: readonly unknown[]): ProviderOrderParts {
  const profiles: ProviderProfile[] = [];
  let running = 0;
  let unusable = 0;
  let failure: ProviderFailure | null = null;
  for (const value of values) {
    const part = usableOrNull(() => toPart(value));
    if (part === null) unusable += 1;
    else if (part === 'running') running += 1;
    else if (part === 'taken_back') failure = TAKEN_BACK;
    else profiles.push(part);
  }
  return { profiles, running, unusable, failure };
}

/** All of an order is still being made. */
export function allocating(quantity: number): ProviderOrderParts {
  return { profiles: [], running: quantity, unusable: 0, failure: null };
}

/** The status comes first: what is still being made may have anything in its other fields. @throws ProviderResponseInvalid */
function toPart(value: unknown): ProviderProfile | 'running' | 'taken_back' {
  const esimStatus = usableOrNull(() => textAt(asObject(value, 'esim'), 'esimStatus')) ?? '';
  const statuses = { esimStatus, smdpStatus: '' };
  const status = statusOf(statuses);
  // Of a status that is missing, or that the contract does not name, nobody knows what comes next.
  if (status === null || isAllocating(statuses)) return 'running';
  return status === 'canceled' ? 'taken_back' : toProfile(toQueriedEsim(value));
}

function usableOrNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProviderResponseInvalid) return null;
    throw error;
  }
}
