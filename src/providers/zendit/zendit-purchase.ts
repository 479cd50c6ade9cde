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

/** Progress of a purchase or refund. */
export type ZenditProgress = 'running' | 'done' | 'failed';

export interface ZenditPurchase {
  readonly transactionId: string;
  readonly progress: ZenditProgress;
  /** The error code of a failed purchase. */
  readonly errorCode: string | null;
  /** Cost including the fee, if the response shows it. */
  readonly cost: ProviderCost | null;
  /**
   * Progress of the refund that the purchase names; null without one.
   * @throws ProviderResponseInvalid for a refund whose form or status violates the contract
   */
  refund(): ZenditProgress | null;
  /** @throws ProviderResponseInvalid when the confirmation of a finished purchase is unusable */
  profile(): ProviderProfile;
}

const PROGRESS: Readonly<Record<string, ZenditProgress>> = {
  ACCEPTED: 'running',
  PENDING: 'running',
  AUTHORIZED: 'running',
  IN_PROGRESS: 'running',
  DONE: 'done',
  FAILED: 'failed',
  // Spelling in the guide of the official SDK.
  FAIL: 'failed',
};

/** @throws ProviderResponseInvalid for a status outside the contract: a guess never ends an order */
export function readProgress(answer: ResponseObject): ZenditProgress {
  const status = textAt(answer, 'status');
  const progress = Object.hasOwn(PROGRESS, status) ? PROGRESS[status] : undefined;
  if (progress === undefined) throw new ProviderResponseInvalid('status');
  return progress;
}

/** @throws ProviderResponseInvalid when the response is not the purchase `transactionId` */
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

/** Null when the reason is unreadable (the purchase failed anyway) or the purchase is still running. */
function readErrorCode(answer: ResponseObject): string | null {
  try {
    const error = objectOrNullAt(answer, 'error');
    return error && codeAt(error, 'code');
  } catch {
    return null;
  }
}

/** An empty object means none: a server may write a missing refund as an object without values. */
function readRefund(answer: ResponseObject): ZenditProgress | null {
  const refund = objectOrNullAt(answer, 'refund');
  return refund && textOrNullAt(refund, 'status') !== null ? readProgress(refund) : null;
}

const FULL_CODE = /^(?:LPA:)?1\$([^$]+)\$([^$]*)/i;
const HOST = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i;
const MATCHING_ID = /^[A-Za-z0-9-]{1,255}$/;

/**
 * The profile of a finished purchase. The activation code may be a bare matching id or a whole code, and the address
 * may have a scheme. The ICCID has 18 to 20 digits without its filler; its check digit is not verified (D23).
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
    activationCode: full ? code : null,
    pin: null,
    puk: null,
    apn: null,
    msisdn: null,
    pooled: false,
    installBy: null,
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
