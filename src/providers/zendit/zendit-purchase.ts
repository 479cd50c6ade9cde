import type { ProviderCost, ProviderProfile } from '../esim-provider.js';
import {
  objectAt,
  objectOrNullAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textAt,
  textOrNullAt,
} from '../http/index.js';
import { readPurchaseCost } from './zendit-amounts.js';
import { codeAt } from './zendit-errors.js';

/** Where a purchase or a refund stands. */
export type ZenditProgress = 'running' | 'done' | 'failed';

export interface ZenditPurchase {
  readonly transactionId: string;
  readonly progress: ZenditProgress;
  /** The code of its error when it failed. */
  readonly errorCode: string | null;
  /** What it cost with its fee, where the answer says so. */
  readonly cost: ProviderCost | null;
  /**
   * Where its refund stands as the purchase itself says it; null without one.
   * @throws ProviderResponseInvalid for a refund of another form or status than the contract has
   */
  refund(): ZenditProgress | null;
  /** @throws ProviderResponseInvalid when the confirmation of a finished purchase cannot be used */
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

/** @throws ProviderResponseInvalid for a status that the contract does not name: no guess ends an order */
export function readProgress(answer: ResponseObject): ZenditProgress {
  const status = textAt(answer, 'status');
  const progress = Object.hasOwn(PROGRESS, status) ? PROGRESS[status] : undefined;
  if (progress === undefined) throw new ProviderResponseInvalid('status');
  return progress;
}

/** @throws ProviderResponseInvalid when it is another purchase than `transactionId`, or none */
export function readPurchase(answer: ResponseObject, transactionId: string): ZenditPurchase {
  if (textAt(answer, 'transactionId') !== transactionId) throw new ProviderResponseInvalid('transactionId');
  return {
    transactionId,
    progress: readProgress(answer),
    errorCode: readErrorCode(answer),
    cost: readPurchaseCost(answer),
    refund: () => readRefund(answer),
    profile: () => readProfile(answer, transactionId),
  };
}

/** Only says why: a failure whose reason cannot be read is a failure, and something that runs has no reason. */
function readErrorCode(answer: ResponseObject): string | null {
  try {
    const error = objectOrNullAt(answer, 'error');
    return error && codeAt(error, 'code');
  } catch {
    return null;
  }
}

/** An empty one is none: a server may write what it has not as an object without values. */
function readRefund(answer: ResponseObject): ZenditProgress | null {
  const refund = objectOrNullAt(answer, 'refund');
  return refund && textOrNullAt(refund, 'status') !== null ? readProgress(refund) : null;
}

const FULL_CODE = /^(?:LPA:)?1\$([^$]+)\$([^$]*)/i;
const HOST = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i;
const MATCHING_ID = /^[A-Za-z0-9-]{1,255}$/;

/**
 * The profile of a finished purchase. The activation code may be a bare matching id or a whole code, and the address
 * may carry a scheme. The ICCID is 18 to 20 digits once its filler is off; its check digit is not ours to judge (D23).
 * @throws ProviderResponseInvalid
 */
function readProfile(purchase: ResponseObject, transactionId: string): ProviderProfile {
  const confirmation = objectAt(purchase, 'confirmation');
  const code = textAt(confirmation, 'activationCode').trim();
  const full = FULL_CODE.exec(code);
  const matchingId = full ? (full[2] ?? '') : code;
  if (!MATCHING_ID.test(matchingId)) throw new ProviderResponseInvalid('activationCode');
  return {
    providerEsimId: transactionId,
    iccid: readIccid(confirmation),
    smdpAddress: readSmdpAddress(textOrNullAt(confirmation, 'smdpAddress') ?? full?.[1]),
    matchingId,
    confirmationCode: null,
    apn: null,
  };
}

function readIccid(confirmation: ResponseObject): string {
  const iccid = textAt(confirmation, 'iccid').trim().replace(/F+$/i, '');
  if (!/^\d{18,20}$/.test(iccid)) throw new ProviderResponseInvalid('iccid');
  return iccid;
}

function readSmdpAddress(written: string | undefined): string {
  const address = (written ?? '')
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/\/.*$/, '');
  if (!HOST.test(address)) throw new ProviderResponseInvalid('smdpAddress');
  return address;
}
