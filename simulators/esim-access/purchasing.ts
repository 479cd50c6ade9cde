import type { SimPackage } from './catalogue.ts';
import type { Faults } from './faults.ts';
import type { Ledger, SimEsim } from './ledger.ts';
import { boughtPackage, mintEsim, newOrderNo } from './minting.ts';
import { WireError, wireTime } from './wire.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Everything that an operation works on. */
export interface Shop {
  readonly ledger: Ledger;
  readonly catalogue: SimPackage[];
  readonly faults: Faults;
  /** Looks that still have to answer 200010, by order number. */
  readonly allocating: Map<string, number>;
  /** Looks that still do not see a purchase, by transactionId. */
  readonly hidden: Map<string, number>;
  /** transactionIds of orders that arrived more than once. */
  readonly repeated: Set<string>;
  webhookUrl: string | null;
}

const MAX_ESIMS = 30;

/** The same transactionId is the same request: it gives the same orderNo and costs nothing. */
export function order(shop: Shop, fields: Fields): unknown {
  const transactionId = transactionIdOf(fields);
  const known = shop.ledger.orderNoOf.get(transactionId);
  if (known !== undefined) {
    shop.repeated.add(transactionId);
    return { orderNo: known, transactionId };
  }
  const lines = linesOf(shop, fields);
  const total = lines.reduce((sum, { sold, count }) => sum + sold.price * count, 0);
  const count = lines.reduce((sum, line) => sum + line.count, 0);
  if (fields.amount != null && fields.amount !== total)
    throw new WireError('200006', 'order amount is wrong');
  if (count > MAX_ESIMS) throw new WireError('200008', 'too many eSIMs');
  if (shop.faults.stock !== null && count > shop.faults.stock)
    throw new WireError('200011', 'insufficient available profiles');
  charge(shop, total);
  if (shop.faults.stock !== null) shop.faults.stock -= count;
  const orderNo = newOrderNo();
  const made = { orderNo, transactionId, atMs: Date.now() };
  const esims = lines.flatMap(({ sold, count: n }) =>
    Array.from({ length: n }, () => mintEsim(sold, made, shop.faults)),
  );
  if (shop.faults.allocatingLooks > 0) shop.allocating.set(orderNo, shop.faults.allocatingLooks);
  if (shop.faults.hiddenLooks > 0) shop.hidden.set(transactionId, shop.faults.hiddenLooks);
  shop.ledger.commit({ type: 'order', transactionId, orderNo, esims });
  return { orderNo, transactionId };
}

/** Idempotency of top-ups is not documented: here a repeated one is applied a second time. */
export function topup(shop: Shop, fields: Fields): unknown {
  const transactionId = transactionIdOf(fields);
  const esim = esimOf(shop, fields);
  const sold = findPackage(shop, fields, 'TOPUP');
  checkPrice(fields.amount, sold.price, '200006');
  if (!['GOT_RESOURCE', 'IN_USE', 'USED_UP'].includes(esim.esimStatus) || esim.supportTopUpType === 1)
    throw new WireError('200002', 'the operation is not allowed in this status');
  if (sold.locationCode !== esim.locationCode)
    throw new WireError('310241', `[310241] base data plan code:[${sold.packageCode}] doesn\`t exist.`);
  charge(shop, sold.price);
  if (shop.faults.hiddenLooks > 0) shop.hidden.set(transactionId, shop.faults.hiddenLooks);
  const bought = boughtPackage(sold, transactionId, Date.now());
  shop.ledger.commit({ type: 'topup', esimTranNo: esim.esimTranNo, price: sold.price, bought });
  const topped = shop.ledger.esims.get(esim.esimTranNo)!;
  return {
    transactionId,
    iccid: topped.iccid,
    expiredTime: wireTime(topped.expiredTimeMs),
    totalVolume: topped.totalVolume,
    totalDuration: topped.totalDuration,
    orderUsage: topped.orderUsage,
  };
}

/** @throws WireError unless it is named by esimTranNo or iccid. */
export function esimOf(shop: Shop, fields: Fields): SimEsim {
  const { esimTranNo, iccid } = fields;
  if (typeof esimTranNo !== 'string' && typeof iccid !== 'string')
    throw new WireError('000105', 'esimTranNo or iccid is missing');
  const found =
    typeof esimTranNo === 'string'
      ? shop.ledger.esims.get(esimTranNo)
      : [...shop.ledger.esims.values()].find((esim) => esim.iccid === iccid);
  if (!found) throw new WireError('310403', 'the eSIM does not exist in the order');
  return found;
}

function transactionIdOf({ transactionId }: Fields): string {
  if (typeof transactionId !== 'string' || transactionId === '')
    throw new WireError('000105', 'transactionId is missing');
  if (transactionId.length > 50) throw new WireError('000107', 'transactionId is too long');
  return transactionId;
}

function linesOf(shop: Shop, { packageInfoList }: Fields): { sold: SimPackage; count: number }[] {
  if (!Array.isArray(packageInfoList) || packageInfoList.length === 0)
    throw new WireError('000105', 'packageInfoList is missing');
  return (packageInfoList as Fields[]).map((line) => {
    const sold = findPackage(shop, line, 'BASE');
    const { count } = line;
    if (!Number.isInteger(count) || (count as number) < 1) throw new WireError('200008', 'count');
    checkPrice(line.price, sold.price, '200005');
    return { sold, count: count as number };
  });
}

function findPackage(shop: Shop, { packageCode, slug }: Fields, kind: SimPackage['kind']): SimPackage {
  const sold = shop.catalogue.find(
    (entry) => entry.kind === kind && (packageCode ? entry.packageCode === packageCode : entry.slug === slug),
  );
  if (!sold) {
    const name = typeof packageCode === 'string' ? packageCode : '';
    throw new WireError('310241', `[310241] base data plan code:[${name}] doesn\`t exist.`);
  }
  return sold;
}

function checkPrice(given: unknown, price: number, code: string): void {
  if (given != null && given !== price) throw new WireError(code, 'the price is wrong');
}

function charge(shop: Shop, total: number): void {
  if (total > shop.ledger.balance) throw new WireError('200007', 'insufficient account balance');
}
