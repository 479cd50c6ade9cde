import type { EntityManager } from 'typeorm';
import { sql, type Transactions, type Tx } from '../../infra/database/index.js';
import {
  type EsimControl,
  type PlacementOperation,
  ProviderUnavailable,
  type RepeatPolicy,
} from '../esim-provider.js';

/** Nothing more is placed, so later lookups only wait for a late result. */
const RETRY_REFUSED_MS = 300_000;
/** Same limit as the constraint `provider_placements_one_repeat`. */
const MAX_PLACEMENTS = 2;

/** One call that buys, tops up, cancels, or changes an eSIM. */
export interface ProviderPlacement {
  readonly provider: string;
  readonly operation: PlacementOperation | EsimControl['action'];
  /**
   * The provider's id of the object that a repeat would duplicate: a purchase, a top-up, or the cancellation of one
   * eSIM.
   */
  readonly key: string;
  /** Reference of the order or top-up that the call serves (D19). */
  readonly reference: string;
  readonly policy: RepeatPolicy;
}

/** Alerts support in the transaction that permits a second placement. */
export type RepeatListener = (tx: Tx, placement: ProviderPlacement) => Promise<void>;

/**
 * Permission to send one placement; the client sends none without it. The class is not exported, so only the guard can
 * create one.
 */
class Permit {
  readonly #isGranted = true;

  get isGranted(): boolean {
    return this.#isGranted;
  }
}
export type PlacementPermit = Permit;

/** Placed twice already, and a third call is not documented as the same request: support decides. */
export class RepeatLimitReached extends ProviderUnavailable {
  constructor() {
    super(RETRY_REFUSED_MS);
    this.name = 'RepeatLimitReached';
  }
}

/**
 * Permits at most two placements of a purchase, top-up or cancellation if the provider does not document a repeat as
 * the same request (D19). The count is a database row with its own constraint, written before the call is sent. Support
 * is alerted before the second call is sent.
 */
export class PlacementGuard {
  private readonly listeners = new Map<ProviderPlacement['operation'], RepeatListener>();

  constructor(
    private readonly transactions: Transactions,
    private readonly manager: EntityManager,
  ) {}

  /** Registers, once per operation at boot, the listener that alerts support. Without one, nothing is repeated. */
  onRepeat(operation: PlacementOperation, listener: RepeatListener): void {
    if (this.listeners.has(operation)) throw new Error(`repeated ${operation}s are already listened to`);
    this.listeners.set(operation, listener);
  }

  /**
   * Runs `send` with a permit. A call that certainly had no effect does not count: one that fails with
   * `ProviderUnavailable`, or a first one that `isRefusal` recognizes as refused. A refused repeat still counts,
   * because it proves nothing about the first call.
   * @throws RepeatLimitReached when the placement may already have taken effect twice; `send` does not run
   */
  async run<T>(
    placement: ProviderPlacement,
    send: (permit: PlacementPermit) => Promise<T>,
    isRefusal: (outcome: { readonly value: T } | { readonly error: unknown }) => boolean = () => false,
  ): Promise<T> {
    if (placement.policy.repeat !== 'undocumented') return send(new Permit());
    const isFirst = (await this.count(placement)) === 1;
    try {
      const value = await send(new Permit());
      if (isFirst && isRefusal({ value })) await this.discount(placement);
      return value;
    } catch (error) {
      if (error instanceof ProviderUnavailable || (isFirst && isRefusal({ error })))
        await this.discount(placement);
      throw error;
    }
  }

  /** Returns the new count. @throws RepeatLimitReached */
  private async count(placement: ProviderPlacement): Promise<number> {
    const { provider, operation, key, reference } = placement;
    const listener = this.listeners.get(operation);
    return this.transactions.run(async (tx) => {
      const { rows } = await sql<{ placements: number }>(
        tx.manager,
        `INSERT INTO provider_placements AS placed (provider, operation, placement_key, provider_reference, placements)
         VALUES ($1, $2, $3, $4, 1)
         ON CONFLICT (provider, operation, placement_key) DO UPDATE
           SET placements = placed.placements + 1, last_placed_at = clock_timestamp()
           WHERE placed.placements < $5
         RETURNING placements`,
        [provider, operation, key, reference, listener ? MAX_PLACEMENTS : 1],
      );
      if (!rows[0]) throw new RepeatLimitReached();
      if (rows[0].placements > 1) await listener!(tx, placement);
      return rows[0].placements;
    });
  }

  private async discount({ provider, operation, key }: ProviderPlacement): Promise<void> {
    const statement = `UPDATE provider_placements SET placements = placements - 1
       WHERE provider = $1 AND operation = $2 AND placement_key = $3 AND placements > 0`;
    // A count that stays too high only costs one repeat. The call's own result must reach the caller.
    await sql(this.manager, statement, [provider, operation, key]).catch(() => undefined);
  }
}
