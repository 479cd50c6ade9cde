import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

export interface SimEsim {
  readonly esimTranNo: string;
  readonly orderNo: string;
  readonly transactionId: string;
  readonly iccid: string;
  readonly matchingId: string;
  readonly packageCode: string;
  readonly price: number;
  readonly createdAtMs: number;
  readonly dataType: number;
  readonly activeType: number;
  readonly supportTopUpType: number;
  readonly locationCode: string;
  readonly durationUnit: string;
  readonly ipExport: string;
  readonly fupPolicy: string;
  readonly smsStatus: number;
  /** A recorded query has `pin` and `puk`. */
  readonly pin: string;
  readonly puk: string;
  esimStatus: string;
  smdpStatus: string;
  eid: string;
  totalVolume: number;
  totalDuration: number;
  orderUsage: number;
  /** Null while nobody has read it. */
  usageReadAtMs: number | null;
  activateTimeMs: number | null;
  installationTimeMs: number | null;
  expiredTimeMs: number;
  packages: SimEsimPackage[];
}

export interface SimEsimPackage {
  readonly packageName: string;
  readonly packageCode: string;
  readonly slug: string;
  readonly duration: number;
  readonly volume: number;
  /** Bytes that it adds to `totalVolume`, where that is not `volume`. */
  readonly addedVolume?: number;
  readonly locationCode: string;
  readonly createTimeMs: number;
  /** The requested transactionId, under which charges are counted. */
  readonly transactionId: string;
  /** Shown instead by queries, for top-ups only: null for no transactionId. */
  readonly shownId?: string | null;
  readonly shownCode?: string;
  /** Queries do not show the purchase before this time. */
  readonly shownFromMs?: number;
  readonly topUpEsimTranNo?: string;
}

/** Events in order; the simulator's state is their result. */
export type LedgerEntry =
  | {
      readonly type: 'order';
      readonly transactionId: string;
      readonly orderNo: string;
      readonly esims: SimEsim[];
    }
  | { readonly type: 'cancel'; readonly esimTranNo: string }
  | { readonly type: 'change'; readonly esimTranNo: string; readonly set: Partial<SimEsim> }
  | {
      readonly type: 'topup';
      readonly esimTranNo: string;
      readonly price: number;
      readonly bought: SimEsimPackage;
    };

const DAY_MS = 86_400_000;
const START_BALANCE = 100_000_000;

/** The simulator's records. With a file, every entry is appended to it before it takes effect. */
export class Ledger {
  balance = START_BALANCE;
  readonly orderNoOf = new Map<string, string>();
  readonly esims = new Map<string, SimEsim>();
  readonly topups = new Map<string, number>();
  readonly topupsOfEsims = new Map<string, number>();
  private readonly file: string | null;

  constructor(file: string | null) {
    this.file = file;
    if (file === null || !existsSync(file)) return;
    const lines = readFileSync(file, 'utf8').split('\n');
    // A last line truncated by a kill has not taken effect, and must not merge with the next one.
    if (lines.pop() !== '') writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    for (const line of lines) this.apply(JSON.parse(line) as LedgerEntry);
  }

  commit(entry: LedgerEntry): void {
    if (this.file !== null) appendFileSync(this.file, `${JSON.stringify(entry)}\n`);
    this.apply(structuredClone(entry));
  }

  esimsOf(orderNo: string): SimEsim[] {
    return [...this.esims.values()].filter((esim) => esim.orderNo === orderNo);
  }

  /** Numbers of paid and of canceled eSIMs, by transactionId. */
  counts(): { purchases: Record<string, number>; canceled: Record<string, number> } {
    const purchases: Record<string, number> = {};
    const canceled: Record<string, number> = {};
    for (const { transactionId, esimStatus } of this.esims.values()) {
      purchases[transactionId] = (purchases[transactionId] ?? 0) + 1;
      if (esimStatus === 'CANCEL') canceled[transactionId] = (canceled[transactionId] ?? 0) + 1;
    }
    return { purchases, canceled };
  }

  /** Fewest days of one unit that each transactionId bought. */
  days(): Record<string, number> {
    const days: Record<string, number> = {};
    for (const { transactionId, duration } of [...this.esims.values()].flatMap(({ packages }) => packages))
      days[transactionId] = Math.min(days[transactionId] ?? Infinity, duration);
    return days;
  }

  private apply(entry: LedgerEntry): void {
    switch (entry.type) {
      case 'order':
        this.orderNoOf.set(entry.transactionId, entry.orderNo);
        for (const esim of entry.esims) {
          this.esims.set(esim.esimTranNo, esim);
          this.balance -= esim.price;
        }
        return;
      case 'cancel': {
        const esim = this.esims.get(entry.esimTranNo)!;
        esim.esimStatus = 'CANCEL';
        this.balance += esim.price;
        return;
      }
      case 'change':
        Object.assign(this.esims.get(entry.esimTranNo)!, entry.set);
        return;
      case 'topup':
        this.applyTopup(entry);
        return;
    }
  }

  private applyTopup({ esimTranNo, price, bought }: Extract<LedgerEntry, { type: 'topup' }>): void {
    const esim = this.esims.get(esimTranNo)!;
    esim.packages.push(bought);
    esim.totalVolume += bought.addedVolume ?? bought.volume;
    esim.totalDuration += bought.duration;
    esim.expiredTimeMs += bought.duration * DAY_MS;
    if (esim.esimStatus === 'USED_UP') esim.esimStatus = 'IN_USE';
    this.balance -= price;
    countUp(this.topups, bought.transactionId);
    countUp(this.topupsOfEsims, esimTranNo);
  }
}

function countUp(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
