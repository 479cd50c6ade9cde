import type { EntityManager } from 'typeorm';
import { sql, type Transactions, type Tx } from '../../infra/database/index.js';
import { type PlacementOperation, ProviderUnavailable, type RepeatPolicy } from '../esim-provider.js';

/** Nothing is placed any more, so later looks only wait for an answer that comes late. */
const RETRY_REFUSED_MS = 300_000;
/** The constraint `provider_placements_one_repeat` says the same. */
const MOST_PLACEMENTS = 2;

/** One call that buys, tops up or takes back. */
export interface ProviderPlacement {
  readonly provider: string;
  readonly operation: PlacementOperation;
  /** What the provider would do twice, by its own name: a purchase, a top-up, the return of one eSIM. */
  readonly key: string;
  /** Of the order or top-up that the call is for (D19). */
  readonly reference: string;
  readonly policy: RepeatPolicy;
}

/** Tells support, in the transaction that lets a second placement leave. */
export type RepeatListener = (tx: Tx, placement: ProviderPlacement) => Promise<void>;

/**
 * The right to send one placement; the client sends none without it. The class itself is not exported, so that only
 * the guard can make one.
 */
class Permit {
  readonly #isGranted = true;

  get isGranted(): boolean {
    return this.#isGranted;
  }
}
export type PlacementPermit = Permit;

/** It was placed twice already, and the provider does not say that a third time is the same request: support decides. */
export class RepeatLimitReached extends ProviderUnavailable {
  constructor() {
    super(RETRY_REFUSED_MS);
    this.name = 'RepeatLimitReached';
  }
}

/**
 * Lets a purchase, a top-up or a return leave at most twice where the provider does not document a repetition as the
 * same request (D19). The count is a row of the database with a constraint of its own, written before the call leaves;
 * before the second one leaves, support has been told.
 */
export class PlacementGuard {
  private readonly listeners = new Map<PlacementOperation, RepeatListener>();

  constructor(
    private readonly transactions: Transactions,
    private readonly manager: EntityManager,
  ) {}

  /** Who tells support of a repetition; without one, nothing is repeated. Once per operation, at boot. */
  onRepeat(operation: PlacementOperation, listener: RepeatListener): void {
    if (this.listeners.has(operation)) throw new Error(`repeated ${operation}s are already listened to`);
    this.listeners.set(operation, listener);
  }

  /**
   * Runs `send` with a permit. A call that certainly had no effect is not counted: one that fails with
   * `ProviderUnavailable`, or a first one that `isRefusal` says was refused. A repetition that is refused stays
   * counted: it says nothing of the first.
   * @throws RepeatLimitReached when it may have taken effect twice before; then nothing has left
   */
  async run<T>(
    placement: ProviderPlacement,
    send: (permit: PlacementPermit) => Promise<T>,
    isRefusal: (outcome: { readonly value: T } | { readonly error: unknown }) => boolean = () => false,
  ): Promise<T> {
    if (placement.policy.repeat === 'same_request') return send(new Permit());
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

  /** How many there are now. @throws RepeatLimitReached */
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
        [provider, operation, key, reference, listener ? MOST_PLACEMENTS : 1],
      );
      if (!rows[0]) throw new RepeatLimitReached();
      if (rows[0].placements > 1) await listener!(tx, placement);
      return rows[0].placements;
    });
  }

  private async discount({ provider, operation, key }: ProviderPlacement): Promise<void> {
    const statement = `UPDATE provider_placements SET placements = placements - 1
       WHERE provider = $1 AND operation = $2 AND placement_key = $3 AND placements > 0`;
    // A count that stays too high costs a repetition and nothing else; what the call ended with must reach the caller.
    await sql(this.manager, statement, [provider, operation, key]).catch(() => undefined);
  }
}
