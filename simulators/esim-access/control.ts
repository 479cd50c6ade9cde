import type { CallbackHabits, Callbacks } from './callbacks.ts';
import type { SimPackage } from './catalog.ts';
import { type FaultsCommand, setFaults } from './faults.ts';
import type { SimEsim } from './ledger.ts';
import type { Shop } from './purchasing.ts';
import { callbackTime } from './wire.ts';

/** Body of `POST /__control`: every present part takes effect. */
export interface ControlCommand {
  readonly faults?: FaultsCommand;
  readonly callbacks?: Partial<CallbackHabits>;
  readonly balance?: number;
  /** Changes a package's price, in 1/10,000 USD. */
  readonly price?: { readonly packageCode: string; readonly price: number };
  /** Stops the sale of a package. */
  readonly withdraw?: string;
  /** Replaces all packages. */
  readonly packages?: readonly SimPackage[];
  /** Simulates a device or network change. Sends the matching callbacks. */
  readonly esim?: { readonly esimTranNo: string } & Partial<SimEsim>;
}

export interface SimulatorState {
  /** Number of paid eSIMs, by transactionId. */
  readonly purchases: Readonly<Record<string, number>>;
  readonly canceled: Readonly<Record<string, number>>;
  /** Fewest days of one eSIM or top-up, by transactionId. */
  readonly days: Readonly<Record<string, number>>;
  /** Number of times that each top-up was applied. */
  readonly topups: Readonly<Record<string, number>>;
  /** Number of charged top-ups per eSIM, by esimTranNo. */
  readonly topupsOfEsims: Readonly<Record<string, number>>;
  /** Orders that arrived more than once. */
  readonly repeated: readonly string[];
  /** Number of calls by path. */
  readonly calls: Readonly<Record<string, number>>;
  /** Maximum number of calls within any 1,000 ms. */
  readonly busiestSecond: number;
  readonly balance: number;
  readonly esims: number;
}

const USAGE_MARKS = [0.5, 0.9];

export function applyControl(shop: Shop, callbacks: Callbacks, command: ControlCommand): void {
  if (command.faults) setFaults(shop.faults, command.faults);
  Object.assign(callbacks.habits, command.callbacks);
  if (command.balance !== undefined) shop.ledger.balance = command.balance;
  for (const entry of shop.catalog)
    if (entry.packageCode === command.price?.packageCode) entry.price = command.price.price;
  const gone = shop.catalog.findIndex((entry) => entry.packageCode === command.withdraw);
  if (gone >= 0) shop.catalog.splice(gone, 1);
  if (command.packages) shop.catalog.splice(0, shop.catalog.length, ...command.packages);
  if (command.esim) changeEsim(shop, callbacks, command.esim);
}

function changeEsim(
  shop: Shop,
  callbacks: Callbacks,
  change: { esimTranNo: string } & Partial<SimEsim>,
): void {
  const before = { ...shop.ledger.esims.get(change.esimTranNo) };
  if (before.esimTranNo === undefined) throw new Error('no such eSIM');
  const { esimTranNo, ...set } = change;
  shop.ledger.commit({ type: 'change', esimTranNo, set });
  const after = shop.ledger.esims.get(esimTranNo)!;
  const { iccid, orderNo, transactionId, esimStatus, smdpStatus, eid } = after;
  const about = { iccid, orderNo, esimTranNo, transactionId };
  const states = { ...about, esimStatus, smdpStatus };
  if (smdpStatus !== before.smdpStatus) {
    const executed = { seqNumber: null, notifyStatus: 'Executed-Success' };
    callbacks.notify('SMDP_EVENT', { ...states, eid, timestamp: callbackTime(Date.now()), ...executed });
  }
  if (esimStatus !== before.esimStatus) callbacks.notify('ESIM_STATUS', states);
  const share = (esim: Partial<SimEsim>) => (esim.orderUsage ?? 0) / (esim.totalVolume || 1);
  const mark = USAGE_MARKS.findLast((each) => share(before) < each && share(after) >= each);
  if (mark === undefined) return;
  const { totalVolume, orderUsage, usageReadAtMs } = after;
  const usage = { totalVolume, orderUsage, remain: totalVolume - orderUsage, remainThreshold: 1 - mark };
  callbacks.notify('DATA_USAGE', {
    ...about,
    ...usage,
    lastUpdateTime: callbackTime(usageReadAtMs ?? Date.now()),
  });
}
