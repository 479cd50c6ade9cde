import { randomBytes, randomInt } from 'node:crypto';
import { EXIT_COUNTRY, fupPolicyOf, type SimPackage, UNUSED_DAYS } from './catalog.ts';
import type { Faults } from './faults.ts';
import type { SimEsim, SimEsimPackage } from './ledger.ts';

const DAY_MS = 86_400_000;
let lastNumber = 0;

/** An order number: `B` and 14 digits. */
export function newOrderNo(): string {
  return `B${newNumber()}`;
}

export function mintEsim(
  sold: SimPackage,
  order: { orderNo: string; transactionId: string; atMs: number; periods: number },
  faults: Faults,
): SimEsim {
  const first = boughtPackage(sold, faults.tooFewDays ? { ...order, periods: 1 } : order, faults);
  return {
    esimTranNo: newNumber(),
    ...{ orderNo: order.orderNo, transactionId: order.transactionId, createdAtMs: order.atMs },
    iccid: newIccid(faults),
    matchingId: randomBytes(16).toString('hex').toUpperCase(),
    packageCode: sold.packageCode,
    price: sold.price * order.periods,
    dataType: sold.dataType,
    activeType: sold.activeType,
    supportTopUpType: sold.supportTopUpType,
    locationCode: sold.locationCode,
    durationUnit: sold.durationUnit,
    ipExport: sold.ipExport ?? EXIT_COUNTRY,
    fupPolicy: fupPolicyOf(sold),
    smsStatus: sold.smsStatus ?? 1,
    ...{ pin: '1234', puk: '12345678' },
    esimStatus: 'GOT_RESOURCE',
    smdpStatus: 'RELEASED',
    eid: '',
    totalVolume: first.volume,
    totalDuration: first.duration,
    orderUsage: 0,
    usageReadAtMs: order.atMs,
    activateTimeMs: null,
    installationTimeMs: null,
    expiredTimeMs: order.atMs + (sold.unusedValidTime ?? UNUSED_DAYS) * DAY_MS,
    packages: [first],
  };
}

/** A package for `periods` days of a day pass, or once. `passVolume` decides about the volume of several days. */
export function boughtPackage(
  sold: SimPackage,
  { transactionId, atMs, periods }: { transactionId: string; atMs: number; periods: number },
  { passVolume }: Pick<Faults, 'passVolume'>,
): SimEsimPackage {
  const { name, packageCode, slug, locationCode } = sold;
  const duration = sold.duration * periods;
  const volume = passVolume === 'total' ? sold.volume * periods : sold.volume;
  return {
    packageName: name,
    packageCode,
    slug,
    duration,
    volume,
    locationCode,
    createTimeMs: atMs,
    transactionId,
    ...(sold.kind === 'TOPUP' && sold.dataType !== 1 && passVolume === 'day' ? { addedVolume: 0 } : {}),
  };
}

/** 14 digits, always unique. */
export function newNumber(): string {
  const now = Number(`${Date.now()}0`);
  lastNumber = Math.max(lastNumber + 1, now + randomInt(10));
  return String(lastNumber);
}

/**
 * A Luhn-valid ICCID of 19 digits, unless the faults say otherwise. The real provider sometimes pads odd ones with an
 * F.
 */
function newIccid(faults: Faults): string {
  const wanted = faults.nextIccid;
  faults.nextIccid = null;
  if (wanted !== null) return wanted;
  let digits = '898522';
  while (digits.length < 18) digits += String(randomInt(10));
  const check = luhnDigit(digits);
  const last = faults.nonLuhn ? (check + 1) % 10 : check;
  return `${digits}${last}${Math.random() < 0.3 ? 'F' : ''}`;
}

function luhnDigit(digits: string): number {
  const sum = [...digits].reverse().reduce((total, text, i) => {
    const doubled = Number(text) * (i % 2 === 0 ? 2 : 1);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return (10 - (sum % 10)) % 10;
}
