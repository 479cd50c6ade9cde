import {
  type EsimAccessSimulator,
  SIMULATOR_CREDENTIALS,
  startEsimAccessSimulator,
} from '../../simulators/esim-access/simulator.js';
import type { Act, Nonsense, Upstream, UpstreamAccount } from './upstream.js';

const ACTS: ReadonlyMap<string, Act> = new Map([
  ['esim/order', 'order'],
  ['esim/cancel', 'cancel'],
  ['esim/topup', 'topup'],
]);
const OPEN_API = '/api/v1/open/';
const UPSTREAM_PACKAGE = 'PDE1D7';
/** In 1/10,000 USD. */
const LIST_PRICE = 6_000;
const START_BALANCE = 100_000_000;
const REUSED_ICCID = '8985220000000000017';

/** eSIM Access: one call orders all eSIMs of an order, and refuses an outdated price. */
export class EsimAccessUpstream implements Upstream {
  readonly name = 'esim_access';
  readonly packageId = `pkg_a_${UPSTREAM_PACKAGE}`;
  readonly topupPackageId = `pkg_a_topup_TOPUP_${UPSTREAM_PACKAGE}`;
  private price = LIST_PRICE;

  private constructor(readonly simulator: EsimAccessSimulator) {}

  static async start(): Promise<EsimAccessUpstream> {
    return new EsimAccessUpstream(await startEsimAccessSimulator({ requestsPerSecond: null }));
  }

  get url(): string {
    return this.simulator.url;
  }

  settings(url: string): Record<string, string> {
    return {
      ESIM_ACCESS_BASE_URL: url,
      ESIM_ACCESS_CODE: SIMULATOR_CREDENTIALS.accessCode,
      ESIM_ACCESS_SECRET: SIMULATOR_CREDENTIALS.secretKey,
    };
  }

  actOf(_method: string, path: string): Act | null {
    return ACTS.get(path.slice(OPEN_API.length)) ?? null;
  }

  account(reference: string): UpstreamAccount {
    const { purchases, canceled } = this.simulator.state();
    return { bought: purchases[reference] ?? 0, canceled: canceled[reference] ?? 0, open: 0 };
  }

  topupsOf(reference: string): number {
    return this.simulator.state().topups[reference] ?? 0;
  }

  references(): readonly string[] {
    const { purchases, topups } = this.simulator.state();
    return [...Object.keys(purchases), ...Object.keys(topups)];
  }

  repeats(): number {
    return this.simulator.state().repeated.length;
  }

  arrivals(act: 'order' | 'topup'): number {
    return this.simulator.state().calls[`esim/${act}`] ?? 0;
  }

  dropAnswersAfterCommit(n: number): void {
    this.simulator.control({ faults: { dropAfterCommit: n } });
  }

  dropCallsBeforeCommit(n: number): void {
    this.simulator.control({ faults: { dropBeforeCommit: n } });
  }

  talkNonsense(n: number, kind: Nonsense): void {
    this.simulator.control({ faults: { garbage: n, garbageKind: kind === 'html' ? 'html' : 'http_500' } });
  }

  /** The next `n` lookups of a new order return that its profiles are still being allocated (200010). */
  allocateForLooks(n: number): void {
    this.simulator.control({ faults: { allocatingLooks: n } });
  }

  leaveStock(esims: number): void {
    this.simulator.control({ faults: { stock: esims } });
  }

  runOutOfFunds(): void {
    this.simulator.control({ balance: 0 });
  }

  runOutOfStock(): void {
    this.leaveStock(0);
  }

  raisePrice(): void {
    this.price = Math.round(this.price * 1.1);
    this.simulator.control({ price: { packageCode: UPSTREAM_PACKAGE, price: this.price } });
  }

  issueIccids(kind: 'reused' | 'not_luhn'): void {
    this.simulator.control({
      faults: kind === 'reused' ? { nextIccid: REUSED_ICCID } : { nonLuhn: true },
    });
  }

  raiseTopupPrice(): void {
    this.simulator.control({
      price: { packageCode: `TOPUP_${UPSTREAM_PACKAGE}`, price: Math.round(LIST_PRICE * 1.1) },
    });
  }

  useEsim({ upstreamId }: { readonly upstreamId: string }): void {
    const used = { esimStatus: 'IN_USE', smdpStatus: 'ENABLED', eid: '89049032'.padEnd(32, '0') };
    this.simulator.control({ esim: { esimTranNo: upstreamId, ...used, installationTimeMs: Date.now() } });
  }

  /** Lookups of an eSIM do not list its purchases. */
  hidePurchasesFromLooks(): void {
    this.simulator.control({ faults: { packageList: 'missing' } });
  }

  calmDown(): void {
    const counted = { dropAfterCommit: 0, dropBeforeCommit: 0, busy: 0, garbage: 0 };
    const lasting = { allocatingLooks: 0, hiddenLooks: 0, stock: null, nextIccid: null, nonLuhn: false };
    const looks = { packageList: 'named' as const };
    this.simulator.control({ faults: { ...counted, ...lasting, ...looks }, balance: START_BALANCE });
  }

  close(): Promise<void> {
    return this.simulator.close();
  }
}
