import type { SimPackage } from './catalog.ts';
import type { Faults } from './faults.ts';
import type { Ledger, SimEsim } from './ledger.ts';
import { mintEsim, newOrderNo } from './minting.ts';
import { WireError } from './wire.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** State that the operations share. */
export interface Shop {
  readonly ledger: Ledger;
  readonly catalog: SimPackage[];
  readonly faults: Faults;
  /** Remaining queries that return 200010, by order number. */
  readonly allocating: Map<string, number>;
  /** Remaining queries that do not show a purchase, by transactionId. */
  readonly hidden: Map<string, number>;
  /** transactionIds of orders that arrived more than once. */
  readonly repeated: Set<string>;
  webhookUrl: string | null;
}

const MAX_ESIMS = 30;

interface OrderLine {
  readonly sold: SimPackage;
  readonly count: number;
  readonly periods: number;
}

/** The same transactionId is the same request: it returns the same orderNo and costs nothing. */
export function order(shop: Shop, fields: Fields): unknown {
  const transactionId = transactionIdOf(fields);
  const known = shop.ledger.orderNoOf.get(transactionId);
  if (known !== undefined) {
    shop.repeated.add(transactionId);
    return { orderNo: known, transactionId };
  }
  const lines = linesOf(shop, fields);
  const total = lines.reduce((sum, { sold, count, periods }) => sum + sold.price * count * periods, 0);
  const count = lines.reduce((sum, line) => sum + line.count, 0);
  checkPrice(fields.amount, total, '200006');
  if (count > MAX_ESIMS) throw new WireError('200008', 'too many eSIMs');
  if (shop.faults.stock !== null && count > shop.faults.stock)
    throw new WireError('200011', 'insufficient available profiles');
  charge(shop, total);
  if (shop.faults.stock !== null) shop.faults.stock -= count;
  const orderNo = newOrderNo();
  const made = { orderNo, transactionId, atMs: Date.now() };
  const esims = lines.flatMap(({ sold, count: n, periods }) =>
    Array.from({ length: n }, () => mintEsim(sold, { ...made, periods }, shop.faults)),
  );
  if (shop.faults.allocatingLooks > 0) shop.allocating.set(orderNo, shop.faults.allocatingLooks);
  if (shop.faults.hiddenLooks > 0) shop.hidden.set(transactionId, shop.faults.hiddenLooks);
  shop.ledger.commit({ type: 'order', transactionId, orderNo, esims });
  return { orderNo, transactionId };
}

/**
 * An empty name counts as none: the published sample has `esimTranNo: ""` beside an iccid. @throws WireError without
 * any
 */
export function esimOf(shop: Shop, { esimTranNo, iccid }: Fields): SimEsim {
  if (!isName(esimTranNo) && !isName(iccid)) throw new WireError('000105', 'esimTranNo or iccid is missing');
  const found = isName(esimTranNo)
    ? shop.ledger.esims.get(esimTranNo)
    : [...shop.ledger.esims.values()].find((esim) => esim.iccid === iccid);
  if (!found) throw new WireError('310403', 'the eSIM does not exist in the order');
  return found;
}

/**
 * Number of days of a day pass: a number in `esim/order`, text in `esim/topup`. No source says what `periodNum` does to
 * a total amount of data, so it is ignored there. @throws WireError
 */
export function periodsOf({ dataType }: SimPackage, { periodNum }: Fields): number {
  if (periodNum == null || periodNum === '' || dataType === 1) return 1;
  const periods = Number(typeof periodNum === 'number' || typeof periodNum === 'string' ? periodNum : NaN);
  if (!Number.isInteger(periods) || periods < 1 || periods > 365) throw new WireError('200008', 'periodNum');
  return periods;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export function transactionIdOf({ transactionId }: Fields): string {
  if (typeof transactionId !== 'string' || transactionId === '')
    throw new WireError('000105', 'transactionId is missing');
  if (transactionId.length > 50) throw new WireError('000107', 'transactionId is too long');
  return transactionId;
}

function linesOf(shop: Shop, { packageInfoList }: Fields): OrderLine[] {
  if (!Array.isArray(packageInfoList) || packageInfoList.length === 0)
    throw new WireError('000105', 'packageInfoList is missing');
  return (packageInfoList as Fields[]).map((line) => {
    const sold = findPackage(shop, line, 'BASE');
    const { count } = line;
    if (!Number.isInteger(count) || (count as number) < 1) throw new WireError('200008', 'count');
    checkPrice(line.price, sold.price, '200005');
    return { sold, count: count as number, periods: periodsOf(sold, line) };
  });
}

/** `packageCode` may also contain a slug. @throws WireError */
export function findPackage(shop: Shop, { packageCode, slug }: Fields, kind: SimPackage['kind']): SimPackage {
  const name = isName(packageCode) ? packageCode : slug;
  const sold = shop.catalog.find(
    (entry) => entry.kind === kind && (entry.packageCode === name || entry.slug === name),
  );
  if (!sold) {
    const text = isName(name) ? name : '';
    throw new WireError('310241', `[310241] base data plan code:[${text}] doesn\`t exist.`);
  }
  return sold;
}

/** Amounts are numbers, or text as in the table of `esim/topup`. @throws WireError with `code` */
export function checkPrice(given: unknown, price: number, code: string): void {
  if (given != null && given !== price && given !== String(price))
    throw new WireError(code, 'the price is wrong');
}

export function charge(shop: Shop, total: number): void {
  if (total > shop.ledger.balance) throw new WireError('200007', 'insufficient account balance');
}
