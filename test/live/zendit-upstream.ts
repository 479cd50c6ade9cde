import { startZenditSimulator, type ZenditSimulator } from '../../simulators/zendit/simulator.js';
import type { Act, Nonsense, Upstream, UpstreamAccount } from './upstream.js';

type Purchase = ReturnType<ZenditSimulator['state']>['purchases'][string];

const OFFER = 'ESIM-FR-7D-1GB';
const TOPUP_OFFER = 'ESIM-FR-30D-5GB';
/** In cents. */
const LIST_PRICE = 120;
const START_BALANCE = 10_000_000;
const PURCHASES = /\/esim\/purchases$/;
const REFUND = /\/esim\/purchases\/[^/]+\/refund$/;
const FINISH_AFTER_MS = 200;
const DAY_MS = 86_400_000;

/** Zendit: each eSIM of an order is a separate purchase `<reference>-<n>`, which ends when it is queried. */
export class ZenditUpstream implements Upstream {
  readonly name = 'zendit';
  readonly packageId = `pkg_z_${OFFER}`;
  readonly topupPackageId = `pkg_z_topup_${TOPUP_OFFER}`;
  private price = LIST_PRICE;
  /** Settings that `calmDown` keeps. */
  private habits: Readonly<Record<string, string | number>> = {};

  private constructor(readonly simulator: ZenditSimulator) {}

  static async start(): Promise<ZenditUpstream> {
    return new ZenditUpstream(await startZenditSimulator());
  }

  get url(): string {
    return this.simulator.baseUrl;
  }

  settings(url: string): Record<string, string> {
    return { ZENDIT_BASE_URL: url, ZENDIT_API_KEY: this.simulator.apiKey };
  }

  actOf(method: string, path: string, body: string): Act | null {
    if (method !== 'POST') return null;
    if (REFUND.test(path)) return 'cancel';
    if (!PURCHASES.test(path)) return null;
    return (JSON.parse(body) as { iccid?: string }).iccid === undefined ? 'order' : 'topup';
  }

  account(reference: string): UpstreamAccount {
    const lines = this.lines(reference).filter(({ status }) => status !== 'FAILED');
    return {
      bought: lines.filter(({ status }) => status === 'DONE').length,
      canceled: lines.filter(({ refund }) => refund === 'DONE').length,
      open: lines.filter(({ status }) => status !== 'DONE').length,
    };
  }

  topupsOf(reference: string): number {
    return this.lines(reference).filter(({ status, topupOf }) => status === 'DONE' && topupOf !== null)
      .length;
  }

  references(): readonly string[] {
    const ids = Object.keys(this.simulator.state().purchases);
    return [...new Set(ids.map((id) => id.replace(/-\d+$/, '')))];
  }

  repeats(): number {
    const { duplicatePosts, duplicateRefunds } = this.simulator.state();
    return duplicatePosts + duplicateRefunds;
  }

  arrivals(): number {
    return this.simulator.state().calls['POST /esim/purchases'] ?? 0;
  }

  dropAnswersAfterCommit(n: number): void {
    this.simulator.control({ dropAfterCommit: n });
  }

  dropCallsBeforeCommit(n: number): void {
    this.simulator.control({ dropBeforeCommit: n });
  }

  talkNonsense(n: number, kind: Nonsense): void {
    if (kind === 'server_error') this.simulator.control({ unavailable: n });
    else this.simulator.control({ badAnswers: n, badAnswer: 'html', badAnswersTakeEffect: false });
  }

  /** Accepts the next `n` purchases and refuses all later ones with a 400 that states no reason. */
  sellOnly(n: number): void {
    this.simulator.control({ sellsOnly: n });
  }

  /** Sets how the next purchases end. Null is DONE. */
  endPurchases(...outcomes: (string | null)[]): void {
    this.simulator.control({ outcomes });
  }

  runOutOfFunds(): void {
    this.simulator.control({ balance: 0 });
  }

  runOutOfStock(): void {
    this.simulator.control({ outOfStock: true });
  }

  raisePrice(): void {
    this.price = Math.round(this.price * 1.1);
    // A POST contains no price, so only Zendit can refuse the old one.
    this.simulator.control({ offers: { [OFFER]: { costFixed: this.price } }, outcomes: ['PRICE_CHANGED'] });
  }

  /** Raises the price like `raisePrice`, but still sells. */
  sellDearer(): void {
    this.price = Math.round(this.price * 1.1);
    this.simulator.control({ offers: { [OFFER]: { costFixed: this.price } } });
  }

  issueIccids(kind: 'reused' | 'not_luhn'): void {
    this.simulator.control({ iccids: kind === 'reused' ? 'reused' : 'nonLuhn' });
  }

  useEsim({ iccid }: { readonly iccid: string }): void {
    const startAt = new Date().toISOString();
    const endAt = new Date(Date.now() + 7 * DAY_MS).toISOString();
    this.simulator.control({
      plans: { [iccid]: { usedGB: 0.1, startAt, endAt, firstInstalledAt: startAt } },
      refundOutcome: 'REFUND_NOT_ALLOWED',
    });
  }

  /** Purchases soon end by themselves, and a webhook reports it. */
  callBack(url: string): void {
    this.habits = { webhookUrl: url, finishAfterMs: FINISH_AFTER_MS };
    this.simulator.control(this.habits);
  }

  calmDown(): void {
    this.simulator.control({ reset: true, balance: START_BALANCE, ...this.habits });
  }

  close(): Promise<void> {
    return this.simulator.close();
  }

  private lines(reference: string): Purchase[] {
    return Object.entries(this.simulator.state().purchases)
      .filter(([id]) => id === reference || id.startsWith(`${reference}-`))
      .map(([, line]) => line);
  }
}
