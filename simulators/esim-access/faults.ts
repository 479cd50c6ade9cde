import { type CatalogHabits, defaultHabits } from './catalog.ts';
import { noTopupFaults, type TopupFaults } from './topup-faults.ts';

export type GarbageKind =
  'html' | 'text' | 'not_an_object' | 'wrong_types' | 'huge' | 'bad_utf8' | 'cut' | 'empty' | 'http_500';

/** Switches of the simulator. Counts refer to the next calls and count down. */
export interface Faults {
  /** Number of orders, top-ups and changes of an eSIM that take effect before their connection is cut. */
  dropAfterCommit: number;
  /** Number of the same calls whose connection is cut before they take effect. */
  dropBeforeCommit: number;
  /** Number of calls refused with 900001. */
  busy: number;
  /** Number of calls that get garbage before any effect. */
  garbage: number;
  garbageKind: GarbageKind;
  /** Number of responses delayed by `slowMs`. */
  slow: number;
  slowMs: number;
  /** Number of queries of a new order that return 200010. */
  allocatingLooks: number;
  /** Number of queries that do not show a new order or top-up. */
  hiddenLooks: number;
  /** Remaining eSIMs; a larger order is refused as a whole. Null: unlimited. */
  stock: number | null;
  /** Refuses the next calls to a path (such as `esim/cancel`) with a code. */
  refuse: { path: string; code: string; count: number; after: number } | null;
  /** ICCID of the next eSIM, even if it already exists. */
  nextIccid: string | null;
  nonLuhn: boolean;
  /** How queries show an eSIM's purchases: as documented, without purchase references, or not at all. */
  packageList: 'named' | 'unnamed' | 'missing';
  /** Number of other customers' eSIMs created after ours: a search by time lists them first. */
  othersAhead: number;
  topups: TopupFaults;
  /** Sends error codes as numbers, without leading zeros. */
  numericCodes: boolean;
  /** `esim/usage/query` returns no reading time for an eSIM without usage. */
  nullUsageTimes: boolean;
  /** `esim/query` returns "" instead of null for an eSIM without a fair use policy. */
  emptyFupPolicy: boolean;
  /**
   * `totalVolume` of a day pass: the data of all its days, or of one day, which top-ups of days do not change. No source
   * shows a pass of several days.
   */
  passVolume: 'day' | 'total';
  /** Day passes are charged for all days, but issued for one. */
  tooFewDays: boolean;
  /** Exit country in `esim/query`, such as `NL/FR`. Null: the package's. */
  ipExport: string | null;
  /** Phone number of every eSIM; empty for a data-only one. */
  msisdn: string;
  revokeWord: 'REVOKE' | 'REVOKED';
  catalog: CatalogHabits;
  /** Null disables the limit. */
  requestsPerSecond: number | null;
}

export function noFaults(requestsPerSecond: number | null): Faults {
  return {
    dropAfterCommit: 0,
    dropBeforeCommit: 0,
    busy: 0,
    garbage: 0,
    garbageKind: 'html',
    slow: 0,
    slowMs: 0,
    allocatingLooks: 0,
    hiddenLooks: 0,
    stock: null,
    refuse: null,
    nextIccid: null,
    nonLuhn: false,
    packageList: 'named',
    othersAhead: 0,
    topups: noTopupFaults(),
    numericCodes: false,
    nullUsageTimes: false,
    emptyFupPolicy: false,
    passVolume: 'total',
    tooFewDays: false,
    ipExport: null,
    msisdn: '',
    revokeWord: 'REVOKE',
    catalog: defaultHabits(),
    requestsPerSecond,
  };
}

/** Faults in a command: nested switches are merged by name; null resets them. */
export type FaultsCommand = Partial<Omit<Faults, 'topups'>> & {
  readonly topups?: Partial<TopupFaults> | null;
};

export function setFaults(faults: Faults, { topups, ...others }: FaultsCommand): void {
  Object.assign(faults, others);
  if (topups !== undefined)
    faults.topups = { ...(topups === null ? noTopupFaults() : faults.topups), ...topups };
}

/** Consumes one of a counted fault. */
export function takeOne<K extends string>(faults: Record<K, number>, name: K): boolean {
  if (faults[name] <= 0) return false;
  faults[name]--;
  return true;
}

const TEXTS: Readonly<Record<GarbageKind, () => string | Buffer>> = {
  html: () => '<!doctype html><html><title>502 Bad Gateway</title></html>',
  text: () => 'upstream connect error',
  not_an_object: () => '[1,2,3]',
  wrong_types: () =>
    JSON.stringify({
      success: true,
      errorCode: null,
      obj: { orderNo: 5, esimList: 'x', pager: [], packageList: 3, balance: 'a', esimUsageList: {} },
    }),
  huge: () => Buffer.alloc(20_000_000, 0x20),
  bad_utf8: () => Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d]),
  cut: () => '{"success":true,"obj":{"ord',
  empty: () => '',
  http_500: () => '<html>500</html>',
};

export function garbageBody(kind: GarbageKind): string | Buffer {
  return TEXTS[kind]();
}
