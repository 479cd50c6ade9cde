import { perMode } from '../common/mode.js';
import { Batcher } from '../infra/batcher.js';
import { LOCKING_BATCHES, lockWaitMs } from '../infra/jobs/index.js';
import {
  callProvider,
  type EsimProvider,
  type Placement,
  type ProviderRegistry,
  ProviderUnavailable,
  retryDelayMs,
} from '../providers/index.js';
import type { Purchase } from './purchase.js';
import type {
  ClaimedPurchase,
  PlacementNote,
  PlacementSlot,
  PurchaseJobsRepository,
} from './purchase-jobs.repository.js';

/** Share of the provider's timeout after which a recorded placement is recorded again instead of sent late. */
const FRESH_SHARE = 1 / 2;

/** Provider calls for one purchase. */
interface PurchaseCalls<State> {
  /** Null when the provider says that it does not know it. */
  find(provider: EsimProvider, signal: AbortSignal): Promise<State | null>;
  place(provider: EsimProvider, placement: Placement, signal: AbortSignal): Promise<State>;
}

interface InProgress {
  readonly state: 'in_progress';
  readonly checkAfterMs: number;
}

/**
 * Gets a purchase's state from the provider without ever buying it twice. A placement is recorded before it is sent.
 * Once one may have been sent, the purchase is looked up before it is placed again, and only a "not found" after the
 * read lag counts (D19, D22).
 */
export class FindOrPlace<P extends Purchase> {
  /** Records concurrent placements in one statement. */
  private readonly notes = perMode(
    () =>
      new Batcher<PlacementNote, PlacementSlot | null>({
        ...LOCKING_BATCHES,
        gather: 2,
        handle: (notes, failures) => this.jobs.markPlaced(notes, lockWaitMs(failures)),
      }),
  );

  constructor(
    private readonly providers: ProviderRegistry,
    private readonly jobs: PurchaseJobsRepository<P>,
  ) {}

  /**
   * Null when the lease is void: then nothing was sent.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable; Error when the provider is not connected
   */
  async findOrPlace<State>(
    claimed: ClaimedPurchase<P>,
    calls: PurchaseCalls<State>,
  ): Promise<State | InProgress | null> {
    const { purchase, neverPlaced } = claimed;
    const provider = this.providers.findByName(purchase.provider);
    if (!provider) {
      if (claimed.firstPlacement) await this.jobs.clearPlacement(claimed);
      throw new Error(`no provider is called ${purchase.provider}`);
    }
    if (!neverPlaced) {
      const found = await callProvider(provider, (signal) => calls.find(provider, signal));
      if (found) return found;
    }
    const slot = freshSlotOf(claimed, provider) ?? (await this.note(claimed, provider));
    if (slot === null) return null;
    // The purchase may appear before the lag is over.
    if (slot.waitMs > 0)
      return {
        state: 'in_progress',
        checkAfterMs: Math.min(slot.waitMs, retryDelayMs(purchase.attempts)),
      };
    try {
      return await callProvider(
        provider,
        (signal) => calls.place(provider, neverPlaced ? 'first' : 'again', signal),
        slot.sendWindowStart,
      );
    } catch (error) {
      if (error instanceof ProviderUnavailable) await this.jobs.clearPlacement(claimed);
      // It may have been bought: the read lag begins now, and the next attempt looks it up first.
      else await this.jobs.touchPlacement(claimed);
      throw error;
    }
  }

  private note(lease: ClaimedPurchase<P>, { readLagMs }: EsimProvider): Promise<PlacementSlot | null> {
    return this.notes[lease.purchase.mode].add({ lease, readLagMs });
  }
}

/** The first placement, unless the purchase has waited in the worker for too long after its claim. */
function freshSlotOf<P extends Purchase>(
  { firstPlacement }: ClaimedPurchase<P>,
  { timeoutMs }: EsimProvider,
): PlacementSlot | null {
  const isFresh =
    firstPlacement !== null && performance.now() - firstPlacement.sendWindowStart < timeoutMs * FRESH_SHARE;
  return isFresh ? firstPlacement : null;
}
