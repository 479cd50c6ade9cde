import type { ProviderProfile, UpstreamCost } from '../esim-provider.js';
import {
  type AnswerObject,
  integerAt,
  objectOrNullAt,
  textAt,
  textOrNullAt,
  UpstreamAnswerInvalid,
} from '../upstream/index.js';
import { toUpstreamCost } from './zendit-money.js';
import { readProfile } from './zendit-profile.js';

/** Where a purchase or a refund stands. */
export type ZenditProgress = 'running' | 'done' | 'failed';

export interface ZenditPurchase {
  readonly transactionId: string;
  readonly progress: ZenditProgress;
  /** The code of its error when it failed. */
  readonly errorCode: string | null;
  /** What it cost, where the answer says so. */
  readonly cost: UpstreamCost | null;
  /** @throws UpstreamAnswerInvalid when the confirmation of a finished purchase cannot be used */
  profile(): ProviderProfile;
}

const PROGRESS: Readonly<Record<string, ZenditProgress>> = {
  ACCEPTED: 'running',
  PENDING: 'running',
  AUTHORIZED: 'running',
  IN_PROGRESS: 'running',
  DONE: 'done',
  FAILED: 'failed',
  // The status as the guide of the official SDK spells it.
  FAIL: 'failed',
};

/** @throws UpstreamAnswerInvalid for a status that the contract does not name: no guess ends an order */
export function readProgress(answer: AnswerObject): ZenditProgress {
  const status = textAt(answer, 'status');
  const progress = Object.hasOwn(PROGRESS, status) ? PROGRESS[status] : undefined;
  if (progress === undefined) throw new UpstreamAnswerInvalid('status');
  return progress;
}

/** @throws UpstreamAnswerInvalid when it is another purchase than `transactionId`, or none */
export function readPurchase(answer: AnswerObject, transactionId: string): ZenditPurchase {
  if (textAt(answer, 'transactionId') !== transactionId) throw new UpstreamAnswerInvalid('transactionId');
  return {
    transactionId,
    progress: readProgress(answer),
    errorCode: readErrorCode(answer),
    cost: readCost(answer),
    profile: () => readProfile(answer, transactionId),
  };
}

/** Only says why: a failure whose reason cannot be read is a failure, and something that runs has no reason. */
function readErrorCode(answer: AnswerObject): string | null {
  try {
    const error = objectOrNullAt(answer, 'error');
    return error && textOrNullAt(error, 'code');
  } catch {
    return null;
  }
}

/** Only compared and logged, so one that cannot be read must not hold up a paid eSIM. */
function readCost(answer: AnswerObject): UpstreamCost | null {
  try {
    return toUpstreamCost(
      integerAt(answer, 'cost'),
      integerAt(answer, 'costCurrencyDivisor'),
      textAt(answer, 'costCurrency'),
    );
  } catch {
    return null;
  }
}
