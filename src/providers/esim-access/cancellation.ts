import {
  type ProviderCancelRequest,
  type ProviderCancelState,
  type ProviderCancelStatus,
  type ProviderFailure,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
} from '../esim-provider.js';
import { type SeenCancelStatus, toCancelStatuses, toNoResponseReason } from '../http/index.js';
import type { CallOptions, EsimAccessApi } from './esim-access-api.js';
import { type EsimSearch, isRefusal } from './esim-search.js';
import { isInUse, isNew, type QueriedEsim, statusOf } from './queried-esim.js';
import { CODES, EsimAccessRefusal, failureOf } from './refusal.js';

const IN_USE: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'An eSIM of the order has been installed or used.',
};
const UNKNOWN_ESIM: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The wholesaler does not know an eSIM of the order.',
};

type Cancellable = 'new' | 'canceled' | ProviderFailure;

/** Cancels orders eSIM by eSIM, but only after it has checked that all of them are unused. */
export class Cancellation {
  constructor(
    private readonly api: EsimAccessApi,
    private readonly search: EsimSearch,
  ) {}

  async cancel(
    { esims, reference }: ProviderCancelRequest,
    signal: AbortSignal,
  ): Promise<ProviderCancelState> {
    const options: CallOptions = { purpose: 'order', signal };
    if (esims.length === 0) return { state: 'refused', failure: UNKNOWN_ESIM };
    const done: string[] = [];
    const open: string[] = [];
    for (const { providerEsimId } of esims) {
      const state = await this.look(providerEsimId, options);
      if (typeof state === 'object') return refusedAfter(done, state);
      (state === 'canceled' ? done : open).push(providerEsimId);
    }
    for (const [index, esimTranNo] of open.entries()) {
      const failure = await this.cancelOne({ esimTranNo, reference }, options).catch((error: unknown) => {
        throw index > 0 ? asUnknown(error) : error;
      });
      if (failure) return refusedAfter(done, failure);
      done.push(esimTranNo);
    }
    return { state: 'canceled' };
  }

  /** Reads the state of the eSIMs without changing it. */
  async findCancelStatuses(
    { esims }: ProviderCancelRequest,
    signal: AbortSignal,
  ): Promise<readonly ProviderCancelStatus[]> {
    const seen: SeenCancelStatus[] = [];
    for (const { providerEsimId } of esims) {
      const look = this.find(providerEsimId, { purpose: 'order', signal }).then(cancelStatusOf);
      seen.push({
        providerEsimId,
        cancelStatus: await look.catch((error: unknown) => toNoResponseReason(error, signal)),
      });
    }
    return toCancelStatuses(seen);
  }

  /** Returns null once the eSIM is canceled. */
  private async cancelOne(
    { esimTranNo, reference }: { readonly esimTranNo: string; readonly reference: string },
    options: CallOptions,
  ): Promise<ProviderFailure | null> {
    try {
      const placement = { operation: 'cancel', key: esimTranNo, reference } as const;
      const answer = await this.api.place(placement, { esimTranNo }, options);
      // The contract specifies an empty response. Accept any other success only if the eSIM's state confirms it.
      if (Object.keys(answer).length > 0 && (await this.look(esimTranNo, options)) !== 'canceled')
        throw new ProviderOutcomeUnknown();
      return null;
    } catch (error) {
      if (!(error instanceof EsimAccessRefusal)) throw error;
      return this.afterRefusal(esimTranNo, error, options);
    }
  }

  /** A refusal because of the status may mean that an earlier call, whose response was lost, canceled the eSIM. */
  private async afterRefusal(
    esimTranNo: string,
    refusal: EsimAccessRefusal,
    options: CallOptions,
  ): Promise<ProviderFailure | null> {
    const failure = failureOf(refusal.code);
    if (failure === null) throw new ProviderOutcomeUnknown(refusal);
    const isAboutStatus = isRefusal(refusal, CODES.wrongStatus) || isRefusal(refusal, CODES.abnormalStatus);
    if (!isAboutStatus) return failure;
    const state = await this.look(esimTranNo, options);
    if (state === 'canceled') return null;
    return state === 'new' ? failure : state;
  }

  private async look(esimTranNo: string, options: CallOptions): Promise<Cancellable> {
    const esim = await this.find(esimTranNo, options);
    if (esim === null) return UNKNOWN_ESIM;
    if (statusOf(esim) === 'canceled') return 'canceled';
    return isNew(esim) ? 'new' : IN_USE;
  }

  private async find(esimTranNo: string, options: CallOptions): Promise<QueriedEsim | null> {
    return this.search.byTranNo(esimTranNo, options).catch((error: unknown) => {
      throw error instanceof EsimAccessRefusal ? new ProviderOutcomeUnknown(error) : error;
    });
  }
}

/** An eSIM that is neither used nor canceled may have expired unused: the provider can still refund it. */
function cancelStatusOf(esim: QueriedEsim | null): ProviderCancelStatus['cancelStatus'] {
  if (esim === null) return 'unknown';
  const status = statusOf(esim);
  if (status === 'canceled') return 'canceled';
  if (isInUse(esim)) return 'in_use';
  return status === null ? 'unknown' : 'unused';
}

function refusedAfter(canceledEsimIds: readonly string[], failure: ProviderFailure): ProviderCancelState {
  if (canceledEsimIds.length === 0) return { state: 'refused', failure };
  return { state: 'partly_canceled', canceledEsimIds, failure };
}

/** Once one eSIM is canceled, "certainly no effect" is no longer true. */
function asUnknown(error: unknown): unknown {
  return error instanceof ProviderUnavailable ? new ProviderOutcomeUnknown(error) : error;
}
