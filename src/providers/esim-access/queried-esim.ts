import type { ProviderProfile } from '../esim-provider.js';
import type { ProviderUsageReport } from '../live-provider.js';
import {
  arrayOrEmptyAt,
  asObject,
  figureOrNullAt,
  instantOrNullAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textAt,
  textOrNullAt,
  usableOrNull,
  valueAt,
} from '../http/index.js';
import { daysOf, NO_TOPUP, TOTAL_DATA } from './package-terms.js';

/** One package on an eSIM: the first is the order's; the others are top-ups. */
export interface QueriedPackage {
  readonly transactionId: string | null;
  readonly packageCode: string | null;
  readonly volume: number | null;
  readonly createdAt: Date | null;
}

/** An eSIM from `esim/query` with validated fields. */
export interface QueriedEsim {
  readonly esimTranNo: string;
  readonly orderNo: string;
  readonly transactionId: string | null;
  readonly esimStatus: string;
  readonly smdpStatus: string;
  /** Null until the provider has allocated it. */
  readonly iccid: string | null;
  readonly activationCode: string | null;
  readonly pin: string | null;
  readonly puk: string | null;
  readonly apn: string | null;
  readonly msisdn: string | null;
  /** Bytes; null for plans without a total: unlimited ones, and those with an allowance per day. */
  readonly totalVolume: number | null;
  /** Days; null when the response has none. */
  readonly totalDays: number | null;
  readonly orderUsage: number | null;
  /** Whether the plan goes on after its allowance: slower, or with the next day's. */
  readonly goesOn: boolean;
  readonly topupSupported: boolean;
  readonly activatedAt: Date | null;
  readonly expiresAt: Date | null;
  /** Null when the response has no list. */
  readonly packages: readonly QueriedPackage[] | null;
}

const ACTIVATION_CODE = /^(?:LPA:)?1\$([A-Za-z0-9.:-]{1,255})\$([A-Za-z0-9-]{1,255})(?:\$[^$]*)*$/i;

/** @throws ProviderResponseInvalid */
export function toQueriedEsim(value: unknown): QueriedEsim {
  const esim = asObject(value, 'esim');
  const dataType = figureOrNullAt(esim, 'dataType');
  const goesOn = dataType !== null && dataType !== TOTAL_DATA;
  return {
    esimTranNo: textAt(esim, 'esimTranNo'),
    orderNo: textAt(esim, 'orderNo'),
    transactionId: textOrNullAt(esim, 'transactionId'),
    esimStatus: textAt(esim, 'esimStatus'),
    smdpStatus: textOrNullAt(esim, 'smdpStatus') ?? '',
    iccid: iccidOf(esim),
    activationCode: textOrNullAt(esim, 'ac'),
    pin: textOrNullAt(esim, 'pin'),
    puk: textOrNullAt(esim, 'puk'),
    apn: textOrNullAt(esim, 'apn'),
    msisdn: usableOrNull(() => textOrNullAt(esim, 'msisdn')),
    totalVolume: goesOn ? null : totalBytesAt(esim, 'totalVolume'),
    totalDays: daysOf(esim, 'totalDuration'),
    orderUsage: usedBytesAt(esim, 'orderUsage'),
    goesOn,
    topupSupported: figureOrNullAt(esim, 'supportTopUpType') !== NO_TOPUP,
    activatedAt: instantOrNullAt(esim, 'activateTime'),
    expiresAt: instantOrNullAt(esim, 'expiredTime'),
    packages:
      valueAt(esim, 'packageList') == null ? null : arrayOrEmptyAt(esim, 'packageList').map(toPackage),
  };
}

/** Null for an impossible total: the rest of the response is still useful. */
function totalBytesAt(object: ResponseObject, key: string): number | null {
  const figure = figureOrNullAt(object, key);
  return figure !== null && Number.isSafeInteger(figure) && figure >= 0 ? figure : null;
}

/** A counter slightly below zero means nothing used. Null for values that are not counters. */
export function usedBytesAt(object: ResponseObject, key: string): number | null {
  const figure = figureOrNullAt(object, key);
  return figure === null || Math.abs(figure) > Number.MAX_SAFE_INTEGER
    ? null
    : Math.max(0, Math.floor(figure));
}

/** @throws ProviderResponseInvalid when the ICCID or the activation code is unusable */
export function toProfile(esim: QueriedEsim): ProviderProfile {
  const [, smdpAddress, matchingId] = ACTIVATION_CODE.exec(esim.activationCode ?? '') ?? [];
  if (smdpAddress === undefined || matchingId === undefined) throw new ProviderResponseInvalid('ac');
  if (esim.iccid === null) throw new ProviderResponseInvalid('iccid');
  return {
    providerEsimId: esim.esimTranNo,
    iccid: esim.iccid,
    smdpAddress,
    matchingId,
    confirmationCode: null,
    activationCode: esim.activationCode,
    pin: esim.pin,
    puk: esim.puk,
    apn: esim.apn,
    msisdn: esim.msisdn,
    pooled: true,
    // Until the first use, `expiredTime` is the installation deadline.
    installBy: esim.activatedAt === null ? esim.expiresAt : null,
  };
}

/** Whether the check digit is right. A wrong one causes a warning only (D23). */
export function isLuhnValid(iccid: string): boolean {
  let sum = 0;
  for (let i = 0; i < iccid.length; i++) {
    const doubled = Number(iccid[iccid.length - 1 - i]) * (i % 2 === 0 ? 1 : 2);
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** 18 to 20 digits, without the F that pads an odd length. */
function iccidOf(esim: ResponseObject): string | null {
  const iccid = textOrNullAt(esim, 'iccid')?.replace(/F$/i, '') ?? null;
  if (iccid !== null && !/^\d{18,20}$/.test(iccid)) throw new ProviderResponseInvalid('iccid');
  return iccid;
}

function toPackage(value: unknown): QueriedPackage {
  const bought = asObject(value, 'packageList');
  return {
    transactionId: textOrNullAt(bought, 'transactionId'),
    packageCode: textOrNullAt(bought, 'packageCode'),
    volume: totalBytesAt(bought, 'volume'),
    createdAt: instantOrNullAt(bought, 'createTime'),
  };
}

/** Not allocated yet: neither ICCID nor activation code. */
const ALLOCATING: readonly string[] = ['CREATE', 'PAYING', 'PAID', 'GETTING_RESOURCE'];
const NEW = { esimStatus: 'GOT_RESOURCE', smdpStatus: 'RELEASED' };

const STATUSES: Readonly<Record<string, ProviderUsageReport['status']>> = {
  GOT_RESOURCE: 'issued',
  IN_USE: 'active',
  USED_UP: 'depleted',
  UNUSED_EXPIRED: 'expired',
  USED_EXPIRED: 'expired',
  SUSPENDED: 'suspended',
  CANCEL: 'canceled',
  // The documented tables say REVOKE; the callbacks say REVOKED.
  REVOKE: 'canceled',
  REVOKED: 'canceled',
};

const PROFILE_STATUSES: Readonly<Record<string, ProviderUsageReport['profileStatus']>> = {
  RELEASED: 'released',
  DOWNLOAD: 'downloaded',
  INSTALLATION: 'installed',
  ENABLED: 'enabled',
  DISABLED: 'disabled',
  DELETED: 'deleted',
};

interface EsimAccessStatuses {
  readonly esimStatus: string;
  readonly smdpStatus: string;
}

export function isAllocating({ esimStatus }: EsimAccessStatuses): boolean {
  return ALLOCATING.includes(esimStatus);
}

/** Whether the eSIM was never installed. Only such an eSIM can be canceled. */
export function isNew({ esimStatus, smdpStatus }: EsimAccessStatuses): boolean {
  return esimStatus === NEW.esimStatus && smdpStatus === NEW.smdpStatus;
}

const USED: readonly string[] = ['IN_USE', 'USED_UP', 'USED_EXPIRED'];

/** Whether the eSIM is or was on a device, so that it cannot be resold. */
export function isInUse(esim: EsimAccessStatuses): boolean {
  return USED.includes(esim.esimStatus) || !['released', 'unknown'].includes(profileStatusOf(esim));
}

/** Null for a status that the contract does not name. */
export function statusOf(esim: EsimAccessStatuses): ProviderUsageReport['status'] | null {
  if (isAllocating(esim)) return 'issued';
  return Object.hasOwn(STATUSES, esim.esimStatus) ? STATUSES[esim.esimStatus]! : null;
}

export function profileStatusOf({ smdpStatus }: EsimAccessStatuses): ProviderUsageReport['profileStatus'] {
  return Object.hasOwn(PROFILE_STATUSES, smdpStatus) ? PROFILE_STATUSES[smdpStatus]! : 'unknown';
}
