import { randomUUID } from 'node:crypto';
import type {
  EsimProvider,
  Placement,
  ProviderCancelRequest,
  ProviderCancelStatus,
  ProviderFailure,
  ProviderOrderParts,
  ProviderOrderRequest,
  ProviderOrderState,
  ProviderProfile,
  ProviderTopupState,
  RepeatPolicy,
} from '../../src/providers/index.js';

type CancelState = Awaited<ReturnType<EsimProvider['cancelOrder']>>;

/** Simulates a placement: applies its effect at the provider, then returns the result for the caller. */
type Script = (
  order: ProviderOrderRequest,
  placement: Placement,
) => ProviderOrderState | Promise<ProviderOrderState>;

const OF_THE_TEST: RepeatPolicy = { repeat: 'same_request', source: 'the test' };

/** An in-memory provider that records its calls, for tests of orders and wallet only. */
export class StubProvider implements EsimProvider {
  readonly name = 'stub';
  readonly timeoutMs = 60_000;
  readLagMs = 0;
  readonly controlEsim = null;
  readonly repeats = { order: OF_THE_TEST, topup: OF_THE_TEST, cancel: OF_THE_TEST };
  readonly placements: { reference: string; placement: Placement }[] = [];
  finds = 0;
  readonly orders = new Map<string, ProviderOrderState>();
  /** The behavior of each placement, in order. Further placements are provisioned. */
  script: Script[] = [];
  /** If set, lookups throw this. */
  findError: Error | null = null;
  /** Results of support's lookups that differ from what was provisioned. */
  readonly parts = new Map<string, Partial<ProviderOrderParts>>();
  cancelState: (request: ProviderCancelRequest) => CancelState = () => ({ state: 'canceled' });
  /** Cancel status of eSIMs by provider id. Others are unused. */
  readonly cancelStatuses = new Map<string, ProviderCancelStatus['cancelStatus']>();
  readonly cancels: ProviderCancelRequest[] = [];

  placeOrder(request: ProviderOrderRequest, placement: Placement): Promise<ProviderOrderState> {
    this.placements.push({ reference: request.reference, placement });
    return attempt(() => (this.script.shift() ?? ((order) => this.provision(order)))(request, placement));
  }

  findOrder({ reference }: ProviderOrderRequest): Promise<ProviderOrderState | null> {
    this.finds++;
    return attempt(() => {
      if (this.findError) throw this.findError;
      return this.orders.get(reference) ?? null;
    });
  }

  findParts({ reference }: ProviderOrderRequest): Promise<ProviderOrderParts> {
    return attempt(() => {
      if (this.findError) throw this.findError;
      const state = this.orders.get(reference);
      const provisioned = state?.state === 'provisioned' ? state : { profiles: [], shortfall: null };
      const { profiles, shortfall: failure } = provisioned;
      return { profiles, running: 0, unusable: 0, failure, ...this.parts.get(reference) };
    });
  }

  findCancelStatuses({ esims }: ProviderCancelRequest): Promise<readonly ProviderCancelStatus[]> {
    return attempt(() => {
      if (this.findError) throw this.findError;
      return esims.map(({ providerEsimId }) => ({
        providerEsimId,
        cancelStatus: this.cancelStatuses.get(providerEsimId) ?? 'unused',
      }));
    });
  }

  cancelOrder(request: ProviderCancelRequest): Promise<CancelState> {
    this.cancels.push(request);
    return attempt(() => this.cancelState(request));
  }

  placeTopup(): Promise<ProviderTopupState> {
    throw new Error('the stub does not top up');
  }

  findTopup(): Promise<ProviderTopupState | null> {
    throw new Error('the stub does not top up');
  }

  /** Provisions `count` profiles and stores them. */
  provision(
    order: Pick<ProviderOrderRequest, 'reference' | 'quantity'>,
    count = order.quantity,
  ): ProviderOrderState {
    const state: ProviderOrderState = {
      state: 'provisioned',
      profiles: Array.from({ length: count }, mintProfile),
      shortfall: count < order.quantity ? OUT_OF_STOCK : null,
    };
    this.orders.set(order.reference, state);
    return state;
  }

  placementsOf(reference: string): Placement[] {
    return this.placements.filter((call) => call.reference === reference).map((call) => call.placement);
  }
}

export const OUT_OF_STOCK: ProviderFailure = { code: 'package_unavailable', reason: 'Out of stock.' };

function mintProfile(): ProviderProfile {
  return {
    providerEsimId: randomUUID(),
    iccid: '8910300000001234567',
    smdpAddress: 'smdp.example.com',
    matchingId: `STUB-${randomUUID()}`,
    confirmationCode: null,
    activationCode: null,
    pin: null,
    puk: null,
    apn: null,
    msisdn: null,
    pooled: true,
    installBy: null,
  };
}

/** Turns a synchronous throw of the script into a rejection. */
async function attempt<T>(work: () => T | Promise<T>): Promise<T> {
  return Promise.resolve().then(work);
}
