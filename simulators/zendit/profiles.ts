import { randomBytes, randomInt } from 'node:crypto';
import type { Confirmation } from './contract.ts';
import type { Faults } from './faults.ts';

const ICCID_DIGITS = 19;
const SMDP_HOST = 'smdp.zendit-simulator.example.com';
const REUSED_ICCID = mintIccid(0);

/** The confirmation of a finished purchase, in the shape set by the switches. */
export function mintConfirmation(faults: Faults, topupOf: string | null): Confirmation {
  const matchingId = randomBytes(10).toString('hex').toUpperCase();
  return {
    iccid: topupOf ?? chooseIccid(faults),
    smdpAddress: faults.smdpScheme ? `https://${SMDP_HOST}/` : SMDP_HOST,
    activationCode: toActivationCode(faults.activationCode, matchingId),
    externalReferenceId: randomBytes(6).toString('hex'),
    redemptionInstructions: 'Scan the code with the camera of the device.',
  };
}

function toActivationCode(shape: Faults['activationCode'], matchingId: string): string {
  if (shape === 'bare') return matchingId;
  if (shape === 'none') return '';
  return `${shape === 'lpa' ? 'LPA:' : ''}1$${SMDP_HOST}$${matchingId}`;
}

function chooseIccid(faults: Faults): string {
  if (faults.iccids === 'reused') return REUSED_ICCID;
  return mintIccid(faults.iccids === 'nonLuhn' ? 1 : 0);
}

/** `offset` 0 makes the check digit right, any other number wrong. */
function mintIccid(offset: number): string {
  let digits = '8944500';
  while (digits.length < ICCID_DIGITS - 1) digits += String(randomInt(10));
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]) * (i % 2 === 0 ? 2 : 1);
    sum += digit > 9 ? digit - 9 : digit;
  }
  return digits + String((10 - (sum % 10) + offset) % 10);
}
