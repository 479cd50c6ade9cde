import { randomUUID } from 'node:crypto';
import type { SimPackage } from './catalog.ts';
import type { SimEsim, SimEsimPackage } from './ledger.ts';
import { boughtPackage, newNumber } from './minting.ts';
import {
  charge,
  checkPrice,
  esimOf,
  type Fields,
  findPackage,
  periodsOf,
  type Shop,
  transactionIdOf,
} from './purchasing.ts';
import type { TopupFaults } from './topup-faults.ts';
import { WireError, wireTime } from './wire.ts';

/** New, In use and Depleted, as the wholesaler's help pages say. */
const TAKE_TOPUPS = ['GOT_RESOURCE', 'IN_USE', 'USED_UP'];
/** From the same help pages. No source names the code of the eleventh; this is the one for a wrong status. */
const MAX_TOPUPS = 10;

/** Idempotency of top-ups is not documented: the simulator applies a repeated one again, unless told to refuse it. */
export function topup(shop: Shop, fields: Fields): unknown {
  const transactionId = transactionIdOf(fields);
  const esim = esimOf(shop, fields);
  const sold = findPackage(shop, fields, 'TOPUP');
  const { topups: faults } = shop.faults;
  const periods = periodsOf(sold, fields);
  const price = sold.price * periods;
  if (faults.refuseRepeats && shop.ledger.topups.has(transactionId))
    throw new WireError('310402', 'duplicate transactionId');
  checkPrice(fields.amount, price, '200006');
  checkTakes(esim, sold);
  charge(shop, price);
  if (shop.faults.hiddenLooks > 0) shop.hidden.set(transactionId, shop.faults.hiddenLooks);
  // 32 hex digits, as in a recorded response.
  const name = faults.otherId ? randomUUID().replaceAll('-', '') : transactionId;
  const bought = asShown(
    boughtPackage(sold, { transactionId, atMs: Date.now(), periods }, shop.faults),
    name,
    esim,
    faults,
  );
  shop.ledger.commit({ type: 'topup', esimTranNo: esim.esimTranNo, price, bought });
  const topped = shop.ledger.esims.get(esim.esimTranNo)!;
  return {
    ...(faults.noId ? {} : { transactionId: name }),
    iccid: topped.iccid,
    expiredTime: wireTime(topped.expiredTimeMs),
    totalVolume: topped.totalVolume,
    totalDuration: topped.totalDuration,
    orderUsage: topped.orderUsage,
    topUpEsimTranNo: bought.topUpEsimTranNo,
  };
}

/** @throws WireError when the eSIM cannot take it */
function checkTakes(esim: SimEsim, sold: SimPackage): void {
  if (!TAKE_TOPUPS.includes(esim.esimStatus) || esim.supportTopUpType === 1)
    throw new WireError('200002', 'the operation is not allowed in this status');
  if (esim.packages.length > MAX_TOPUPS) throw new WireError('200002', 'too many top-ups');
  // "Specific top ups work with specific plans": days for passes, data for the others.
  if (sold.locationCode !== esim.locationCode || sold.supportTopUpType !== esim.supportTopUpType)
    throw new WireError('310241', `[310241] base data plan code:[${sold.packageCode}] doesn\`t exist.`);
}

/** How all later queries show the purchase: a reference once assigned stays, whatever the switches say later. */
function asShown(bought: SimEsimPackage, name: string, esim: SimEsim, faults: TopupFaults): SimEsimPackage {
  const { packageCode, createTimeMs } = bought;
  return {
    ...bought,
    shownId: shownIdOf(name, esim, faults),
    shownCode: faults.baseCodeWithoutId ? packageCode.replace(/^TOPUP_/, '') : packageCode,
    shownFromMs: createTimeMs + faults.lateEntry,
    topUpEsimTranNo: newNumber(),
  };
}

function shownIdOf(name: string, esim: SimEsim, faults: TopupFaults): string | null {
  if (faults.noId || faults.baseCodeWithoutId) return null;
  if (faults.orderId) return esim.transactionId;
  return name;
}
