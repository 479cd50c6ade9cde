import { inOldForm, packageOnWire, type SimPackage } from './catalog.ts';
import { esimOnWire } from './esim-on-wire.ts';
import type { Faults } from './faults.ts';
import type { SimEsim } from './ledger.ts';
import { esimOf, type Fields, order, type Shop } from './purchasing.ts';
import { topup } from './topup.ts';
import { parseWireTime, WireError, wireTime } from './wire.ts';

export type Operation = (shop: Shop, fields: Fields) => unknown;

/** Every call of the contract, by its path under `/api/v1/open/`. */
export const OPERATIONS: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ['package/list', listPackages],
  ['esim/order', order],
  ['esim/query', query],
  ['esim/cancel', cancel],
  ['esim/suspend', suspend],
  ['esim/unsuspend', unsuspend],
  ['esim/revoke', revoke],
  ['esim/usage/query', queryUsage],
  ['esim/topup', topup],
  ['balance/query', (shop) => ({ balance: shop.ledger.balance })],
  ['location/list', listLocations],
  ['webhook/save', saveWebhook],
  ['webhook/query', (shop) => ({ webhook: shop.webhookUrl })],
  ['esim/sendSms', sendSms],
]);

function listPackages(shop: Shop, fields: Fields): unknown {
  const { catalog: habits } = shop.faults;
  const kind = fields.type === 'TOPUP' ? 'TOPUP' : 'BASE';
  const entries = kind === 'TOPUP' ? topupsFor(shop, fields) : basesLike(shop, fields);
  const isOld = habits.oldForm === 'all' || (habits.oldForm === 'topups' && kind === 'TOPUP');
  const readable = entries
    .filter((entry) => isIn(entry, fields.locationCode))
    .map(packageOnWire)
    .map((entry) => (isOld ? inOldForm(entry) : entry));
  const unreadable = Array.from({ length: habits.unreadable }, () => ({ packageCode: null }));
  return { packageList: [...readable, ...unreadable] };
}

function basesLike(shop: Shop, fields: Fields): SimPackage[] {
  return shop.catalog
    .filter(({ kind }) => kind === 'BASE')
    .filter((entry) => !fields.packageCode || entry.packageCode === fields.packageCode)
    .filter((entry) => !fields.slug || entry.slug === fields.slug);
}

/** "All of the Top Up plans available for a specific packageCode, slug or ICCID". */
function topupsFor(shop: Shop, fields: Fields): SimPackage[] {
  const topups = shop.catalog.filter(({ kind }) => kind === 'TOPUP');
  const { iccid } = fields;
  if (!iccid && !fields.packageCode && !fields.slug) {
    const { unfilteredTopups } = shop.faults.catalog;
    if (unfilteredTopups === 'refused')
      throw new WireError('000105', 'packageCode, slug or iccid is missing');
    return unfilteredTopups === 'all' ? topups : [];
  }
  const esim = [...shop.ledger.esims.values()].find((each) => each.iccid === iccid);
  if (iccid && !esim) throw new WireError('310241', 'no eSIM of this ICCID');
  const codes = esim
    ? esim.packages.map(({ packageCode }) => packageCode)
    : basesLike(shop, fields).map(({ packageCode }) => packageCode);
  // Top-ups fit certain plans: here, those of the same place and kind.
  const bases = shop.catalog.filter(({ packageCode }) => codes.includes(packageCode));
  return topups.filter((topup) =>
    bases.some(
      ({ location, supportTopUpType }) =>
        location === topup.location && supportTopUpType === topup.supportTopUpType,
    ),
  );
}

/** `!RG` selects regions, `!GL` the world, anything else a place. */
function isIn({ location, locationCode }: SimPackage, asked: unknown): boolean {
  if (!asked) return true;
  const countries = location.split(',').length;
  if (asked === '!GL') return locationCode.startsWith('GL');
  if (asked === '!RG') return countries > 1 && !locationCode.startsWith('GL');
  return locationCode === asked;
}

function query(shop: Shop, fields: Fields): unknown {
  const { pageNum, pageSize } = pagerOf(fields);
  const hidden = lookAtHidden(shop);
  const all = select(shop, fields).filter((esim) => !hidden.has(esim.transactionId));
  if (typeof fields.orderNo === 'string') {
    if (all.length === 0) throw new WireError('310272', 'orderNo does not exist');
    if (lookAtAllocating(shop, fields.orderNo))
      throw new WireError('200010', 'SM-DP+ is still allocating profiles');
  }
  const ahead = fields.startTime == null ? 0 : shop.faults.othersAhead;
  const [from, to] = [(pageNum - 1) * pageSize - ahead, pageNum * pageSize - ahead];
  const page = all.slice(Math.max(0, from), Math.max(0, to));
  const allocating = new Set(
    [...new Set(page.map((e) => e.orderNo))].filter((no) => lookAtAllocating(shop, no)),
  );
  return {
    esimList: page.map((esim) => esimOnWire(esim, allocating.has(esim.orderNo), hidden, shop.faults)),
    pager: { pageSize, pageNum, total: all.length + ahead },
  };
}

function select(shop: Shop, fields: Fields): SimEsim[] {
  const { orderNo, esimTranNo, iccid, startTime, endTime } = fields;
  const all = [...shop.ledger.esims.values()];
  if (typeof orderNo === 'string') return all.filter((esim) => esim.orderNo === orderNo);
  if (typeof esimTranNo === 'string') return all.filter((esim) => esim.esimTranNo === esimTranNo);
  if (typeof iccid === 'string') return all.filter((esim) => esim.iccid === iccid);
  if (startTime == null || endTime == null) throw new WireError('000105', 'nothing to look for');
  const [fromMs, toMs] = [parseWireTime(startTime), parseWireTime(endTime)];
  // Newest first, as the portal shows them.
  return all.filter((esim) => esim.createdAtMs >= fromMs && esim.createdAtMs <= toMs).reverse();
}

function pagerOf({ pager }: Fields): { pageNum: number; pageSize: number } {
  const { pageNum, pageSize } = (pager ?? {}) as Fields;
  if (pageNum == null || pageSize == null) throw new WireError('000105', 'pager is missing');
  const isIn = (value: unknown, min: number, max: number) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
  if (!isIn(pageNum, 1, 10_000) || !isIn(pageSize, 5, 500)) throw new WireError('200008', 'pager');
  return { pageNum: pageNum as number, pageSize: pageSize as number };
}

/** transactionIds hidden from this query; counts the query. */
function lookAtHidden(shop: Shop): ReadonlySet<string> {
  const hidden = new Set(shop.hidden.keys());
  for (const [id, looks] of shop.hidden) {
    if (looks <= 1) shop.hidden.delete(id);
    else shop.hidden.set(id, looks - 1);
  }
  return hidden;
}

function lookAtAllocating(shop: Shop, orderNo: string): boolean {
  const looks = shop.allocating.get(orderNo) ?? 0;
  if (looks <= 1) shop.allocating.delete(orderNo);
  else shop.allocating.set(orderNo, looks - 1);
  return looks > 0;
}

function cancel(shop: Shop, fields: Fields): unknown {
  const esim = esimOf(shop, fields);
  if (esim.esimStatus !== 'GOT_RESOURCE' || esim.smdpStatus !== 'RELEASED')
    throw new WireError('200002', 'the operation is not allowed in this status');
  shop.ledger.commit({ type: 'cancel', esimTranNo: esim.esimTranNo });
  return {};
}

function sendSms(shop: Shop, fields: Fields): unknown {
  esimOf(shop, fields);
  return {};
}

const WORKING: readonly string[] = ['GOT_RESOURCE', 'IN_USE', 'USED_UP'];

function suspend(shop: Shop, fields: Fields): unknown {
  return setStatus(shop, esimOf(shop, fields), WORKING, 'SUSPENDED');
}

/** Back to the status before, as far as its use shows it. */
function unsuspend(shop: Shop, fields: Fields): unknown {
  const esim = esimOf(shop, fields);
  const isSpent = esim.totalVolume > 0 && esim.orderUsage >= esim.totalVolume;
  const inUse = isSpent ? 'USED_UP' : 'IN_USE';
  return setStatus(shop, esim, ['SUSPENDED'], esim.activateTimeMs === null ? 'GOT_RESOURCE' : inUse);
}

function revoke(shop: Shop, fields: Fields): unknown {
  return setStatus(shop, esimOf(shop, fields), [...WORKING, 'SUSPENDED'], shop.faults.revokeWord);
}

function setStatus(shop: Shop, esim: SimEsim, before: readonly string[], esimStatus: string): unknown {
  if (!before.includes(esim.esimStatus))
    throw new WireError('200002', 'the operation is not allowed in this status');
  shop.ledger.commit({ type: 'change', esimTranNo: esim.esimTranNo, set: { esimStatus } });
  return {};
}

function queryUsage(shop: Shop, { esimTranNoList }: Fields): unknown {
  if (!Array.isArray(esimTranNoList) || esimTranNoList.length > 10)
    throw new WireError('200008', 'esimTranNoList');
  const esims = (esimTranNoList as string[]).flatMap((no) => shop.ledger.esims.get(no) ?? []);
  return {
    esimUsageList: esims.map((esim) => ({
      esimTranNo: esim.esimTranNo,
      dataUsage: esim.orderUsage,
      totalData: esim.totalVolume,
      lastUpdateTime: usageTimeOf(esim, shop.faults),
    })),
  };
}

function usageTimeOf({ orderUsage, usageReadAtMs }: SimEsim, { nullUsageTimes }: Faults): string | null {
  return usageReadAtMs === null || (nullUsageTimes && orderUsage === 0) ? null : wireTime(usageReadAtMs);
}

function listLocations(shop: Shop): unknown {
  const codes = new Map(shop.catalog.map((entry) => [entry.locationCode, entry.location]));
  return {
    locationList: [...codes].map(([code, location]) => ({
      code,
      name: code,
      type: location === code ? 1 : 2,
      subLocationList:
        location === code ? null : location.split(',').map((sub) => ({ code: sub, name: sub })),
    })),
  };
}

function saveWebhook(shop: Shop, { webhook }: Fields): unknown {
  if (typeof webhook !== 'string') throw new WireError('000105', 'webhook is missing');
  shop.webhookUrl = webhook;
  return {};
}
