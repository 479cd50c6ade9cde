import { type CatalogueHabits, defaultHabits } from './catalogue.ts';
import { noTopupFaults, type TopupFaults } from './topup-faults.ts';

export type GarbageKind =
  'html' | 'text' | 'not_an_object' | 'wrong_types' | 'huge' | 'bad_utf8' | 'cut' | 'empty' | 'http_500';

/** Switches of the simulator; counts are about the next calls and count down. */
export interface Faults {
  /** Orders and top-ups that take effect, and whose connection is then cut. */
  dropAfterCommit: number;
  /** Orders and top-ups whose connection is cut before they take effect. */
  dropBeforeCommit: number;
  /** Calls refused with 900001. */
  busy: number;
  /** Calls answered with garbage, before any effect. */
  garbage: number;
  garbageKind: GarbageKind;
  /** The next answers come this late. */
  slow: number;
  slowMs: number;
  /** How many looks at a new order answer 200010. */
  allocatingLooks: number;
  /** How many looks at anything do not show a new order or top-up. */
  hiddenLooks: number;
  /** eSIMs left; an order for more is refused as a whole. Null: endless. */
  stock: number | null;
  /** Refuses the next calls to a path (such as `esim/cancel`) with a code. */
  refuse: { path: string; code: string; count: number; after: number } | null;
  /** The next eSIM gets this ICCID, whoever has it already. */
  nextIccid: string | null;
  nonLuhn: boolean;
  /** How looks show what was bought for an eSIM: as documented, without the names of the purchases, or not at all. */
  packageList: 'named' | 'unnamed' | 'missing';
  /** So many eSIMs of others were made after ours: a search by time lists them first. */
  othersAhead: number;
  topups: TopupFaults;
  /** Error codes are numbers, without the zeros in front. */
  numericCodes: boolean;
  /** `esim/usage/query` does not know when the counter of an eSIM without usage was read. */
  nullUsageTimes: boolean;
  /** `esim/query` says "" instead of null for an eSIM without a fair use policy. */
  emptyFupPolicy: boolean;
  /** Where data leave to the internet, as `esim/query` shows it: one country or several, such as `NL/FR`. */
  ipExport: string;
  revokeWord: 'REVOKE' | 'REVOKED';
  catalogue: CatalogueHabits;
  /** Null switches the limit off. */
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
    ipExport: 'HK',
    revokeWord: 'REVOKE',
    catalogue: defaultHabits(),
    requestsPerSecond,
  };
}

/** As a command sets them: of nested switches only those that are named; null puts the nested ones back. */
export type FaultsCommand = Partial<Omit<Faults, 'topups'>> & {
  readonly topups?: Partial<TopupFaults> | null;
};

export function setFaults(faults: Faults, { topups, ...others }: FaultsCommand): void {
  Object.assign(faults, others);
  if (topups !== undefined)
    faults.topups = { ...(topups === null ? noTopupFaults() : faults.topups), ...topups };
}

/** Uses one of a counted fault up. */
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
