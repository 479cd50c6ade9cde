import type { ProviderProfile } from '../esim-provider.js';
import {
  type ResponseObject,
  objectAt,
  textAt,
  textOrNullAt,
  ProviderResponseInvalid,
} from '../http/index.js';

const FULL_CODE = /^(?:LPA:)?1\$([^$]+)\$([^$]*)/i;
const HOST = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i;
const MATCHING_ID = /^[A-Za-z0-9-]{1,255}$/;

/**
 * The profile of a finished purchase. The activation code may be a bare matching id or a whole code, and the address
 * may carry a scheme. The ICCID is 18 to 20 digits once its filler is off; its check digit is not ours to judge (D23).
 * @throws ProviderResponseInvalid
 */
export function readProfile(purchase: ResponseObject, transactionId: string): ProviderProfile {
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
