import { createHmac, randomUUID } from 'node:crypto';
import {
  type AutoTopup,
  type ChangesPage,
  type CreatedInstallLink,
  type Destination,
  type EsimEvent,
  type EventPage,
  EsimClient,
  type Esim,
  type EsimPlan,
  type EsimWithInstall,
  type InstallLink,
  type LoggedCall,
  type NewAutoTopup,
  type NewInstallLink,
  type NewOrder,
  type NewRefundRequest,
  type NewTopup,
  type Order,
  type Package,
  type Page,
  type RefundRequest,
  type Shelf,
  type Topup,
  type Usage,
  type Balance,
} from '@partner-esim/sdk';

export type Money = Balance['available'];
export type Account = Awaited<ReturnType<EsimClient['me']>>;
export type {
  AutoTopup,
  Esim,
  EsimEvent as ServiceEvent,
  EsimWithInstall,
  LoggedCall,
  NewInstallLink,
  NewOrder,
  NewTopup,
  Order,
  Package,
  Page,
  RefundRequest,
  Topup,
  Usage,
} from '@partner-esim/sdk';
export {
  EsimApiError as ApiError,
  EsimConnectionError as ConnectionError,
  isApiError,
} from '@partner-esim/sdk';

/** Filters as the user typed them. The service validates them and names the wrong one. */
type Typed = Readonly<Record<string, string | number | undefined>>;

export interface PartnerApiOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly signal: AbortSignal;
  /** Maximum tries per call. The default of 3 is low because a person waits. */
  readonly maxTries?: number;
}

const MAX_TRIES = 3;

/** The API calls that the commands make. Ctrl-C aborts all of them. */
export class PartnerApi {
  private readonly client: EsimClient;
  private firstDate: string | null = null;
  private retryAfter: string | null = null;
  private readonly call: { readonly signal: AbortSignal };

  constructor(private readonly options: PartnerApiOptions) {
    const { baseUrl, apiKey, signal, maxTries = MAX_TRIES } = options;
    this.client = new EsimClient({ baseUrl, apiKey, maxTries, fetch: (...call) => this.fetch(...call) });
    this.call = { signal };
  }

  private async fetch(...call: Parameters<typeof fetch>): Promise<Response> {
    const response = await fetch(...call);
    this.firstDate ??= response.headers.get('date');
    this.retryAfter = response.headers.get('retry-after');
    return response;
  }

  /** A code for `text` that only a holder of this API key can compute. */
  mac(text: string): string {
    return createHmac('sha256', this.options.apiKey).update(text).digest('base64url');
  }

  /** `Retry-After` of the last response; 0 without one. */
  get lastRetryAfterMs(): number {
    return (Number(this.retryAfter) || 0) * 1_000;
  }

  /**
   * Time of the first response by the service's clock, rounded down to seconds. Without a Date header, the time of this
   * machine.
   */
  get firstAnsweredAtMs(): number {
    return Date.parse(this.firstDate ?? '') || Date.now();
  }

  me(): Promise<Account> {
    return this.client.me(this.call);
  }

  async packages(filters: Typed): Promise<Page<Package>> {
    return this.client.catalog.list(filters, this.call);
  }

  /** @param days shows the price of that many days, for a package that is sold by days */
  package(id: string, days?: number): Promise<Package> {
    return this.client.catalog.get(id, { ...this.call, ...(days === undefined ? {} : { days }) });
  }

  /** Iterates over all pages. */
  allPackages(filters: Typed): AsyncIterable<Package> {
    return this.client.catalog.list({ ...filters, limit: 100 }, this.call);
  }

  shelf(filters: Typed): Promise<Shelf> {
    return this.client.catalog.shelf(filters, this.call);
  }

  destinations(): Promise<readonly Destination[]> {
    return this.client.catalog.destinations(this.call);
  }

  catalogChanges(after: string | undefined, limit: number): Promise<ChangesPage> {
    return this.client.catalog.changes(after === undefined ? { limit } : { after, limit }, this.call);
  }

  order(id: string, waitSeconds = 0): Promise<Order> {
    return this.client.orders.get(id, { ...this.call, waitSeconds });
  }

  async orders(filters: Typed): Promise<Page<Order>> {
    return this.client.orders.list(filters, this.call);
  }

  placeOrder(order: NewOrder, idempotencyKey: string = randomUUID()): Promise<Order> {
    return this.client.orders.place(order, { ...this.call, idempotencyKey });
  }

  cancelOrder(id: string): Promise<Order> {
    return this.client.orders.cancel(id, this.call);
  }

  async esims(filters: Typed): Promise<Page<Esim>> {
    return this.client.esims.list(filters, this.call);
  }

  /**
   * Includes install data. Use it only for a person who requested it, and never where the result is kept, such as in a
   * log or an assistant.
   */
  esimWithInstall(id: string): Promise<EsimWithInstall> {
    return this.client.esims.get(id, this.call);
  }

  /** Leaves out install data, because anyone with the activation code can install the eSIM. */
  async esim(id: string): Promise<Esim> {
    const shown = await this.client.esims.get(id, this.call);
    const { smdp_address, matching_id, activation_code, confirmation_code, pin, puk, install, ...esim } =
      shown;
    void [smdp_address, matching_id, activation_code, confirmation_code, pin, puk, install];
    return esim;
  }

  labelEsim(id: string, label: string | null): Promise<Esim> {
    return this.client.esims.update(id, { label }, this.call);
  }

  controlEsim(
    id: string,
    action: 'suspend' | 'resume' | 'revoke',
    reason: string | undefined,
  ): Promise<Esim> {
    return this.client.esims[action](id, reason === undefined ? {} : { reason }, this.call);
  }

  replaceEsim(id: string): Promise<Order> {
    return this.client.esims.replace(id, this.call);
  }

  usage(id: string): Promise<Usage> {
    return this.client.esims.usage(id, this.call);
  }

  /** Reads all pages. */
  async plans(esimId: string): Promise<{ readonly pooled: boolean; readonly plans: readonly EsimPlan[] }> {
    const plans: EsimPlan[] = [];
    let pooled = false;
    for await (const page of this.client.esims.plans(esimId, this.call).pages()) {
      plans.push(...page.data);
      pooled = page.pooled;
    }
    return { pooled, plans };
  }

  autoTopup(esimId: string): Promise<AutoTopup> {
    return this.client.esims.autoTopup(esimId, this.call);
  }

  setAutoTopup(esimId: string, rule: NewAutoTopup): Promise<AutoTopup> {
    return this.client.esims.setAutoTopup(esimId, rule, this.call);
  }

  deleteAutoTopup(esimId: string): Promise<void> {
    return this.client.esims.deleteAutoTopup(esimId, this.call);
  }

  createInstallLink(esimId: string, terms: NewInstallLink): Promise<CreatedInstallLink> {
    return this.client.esims.createInstallLink(esimId, terms, this.call);
  }

  async installLinks(esimId: string): Promise<Page<InstallLink>> {
    return this.client.esims.installLinks(esimId, this.call);
  }

  revokeInstallLink(esimId: string, linkId: string): Promise<void> {
    return this.client.esims.revokeInstallLink(esimId, linkId, this.call);
  }

  async topupPackages(esimId: string): Promise<Page<Package>> {
    return this.client.esims.topupPackages(esimId, this.call);
  }

  /** Reads all pages. */
  async allTopupPackages(esimId: string): Promise<readonly Package[]> {
    const found: Package[] = [];
    for await (const each of this.client.esims.topupPackages(esimId, this.call)) found.push(each);
    return found;
  }

  placeTopup(topup: NewTopup, idempotencyKey: string = randomUUID()): Promise<Topup> {
    return this.client.topups.place(topup, { ...this.call, idempotencyKey });
  }

  topup(id: string, waitSeconds = 0): Promise<Topup> {
    return this.client.topups.get(id, { ...this.call, waitSeconds });
  }

  requestRefund(request: NewRefundRequest): Promise<RefundRequest> {
    return this.client.refunds.create(request, this.call);
  }

  refund(id: string): Promise<RefundRequest> {
    return this.client.refunds.get(id, this.call);
  }

  async refunds(filters: Typed): Promise<Page<RefundRequest>> {
    return this.client.refunds.list(filters, this.call);
  }

  cancelRefund(id: string): Promise<RefundRequest> {
    return this.client.refunds.cancel(id, this.call);
  }

  activate(esimId: string): Promise<Esim> {
    return this.client.sandbox.activate(esimId, this.call);
  }

  consume(esimId: string, percent: number): Promise<Esim> {
    return this.client.sandbox.consume(esimId, { percent }, this.call);
  }

  expire(esimId: string): Promise<Esim> {
    return this.client.sandbox.expire(esimId, this.call);
  }

  balance(): Promise<readonly Balance[]> {
    return this.client.wallet.balance(this.call);
  }

  event(id: string): Promise<EsimEvent> {
    return this.client.events.get(id, this.call);
  }

  /**
   * Reads a page of the feed. The service delays an empty page by up to `waitSeconds` if it supports waiting, which
   * `waited` in the result shows.
   */
  events(filters: Typed, limit: number, waitSeconds = 0): Promise<EventPage> {
    const wait = waitSeconds > 0 ? { waitSeconds } : {};
    return this.client.events.list(filters, { ...this.call, limit, ...wait });
  }

  /** A page of the key's own calls, newest first. */
  async requests(filters: Typed): Promise<Page<LoggedCall>> {
    return this.client.requests.list(filters, this.call);
  }
}
