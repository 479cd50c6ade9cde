import { Injectable } from '@nestjs/common';
import { handleApart } from '../../infra/batcher.js';
import { boundedCache } from '../../infra/bounded-cache.js';
import { type PurgeStep, purgeWhileMore } from '../../infra/purge-in-steps.js';
import { type Discards, DiscardsRepository } from './discards.repository.js';

const STEP_ROWS = 1_000;
/** Maximum refusals per run, because each costs separate statements; the next run continues. */
const MAX_REFUSED = 50;
/** Maximum deliveries, refused or locked, that consecutive runs skip before starting over. */
const MAX_PASSED_OVER = 10_000;
const RUNS_LEFT = 100;
/** Maximum refusals named in a run's error. */
const MAX_NAMED = 5;

export interface DiscardOptions {
  readonly stopping?: AbortSignal | undefined;
  /** Defaults to no limit. */
  readonly maxSteps?: number;
}

/** Position of a run. */
interface Walk {
  readonly which: Discards;
  readonly maxSteps: number;
  readonly passedOver: Set<string>;
  readonly refusals: { readonly id: string; readonly error: unknown }[];
  steps: number;
}

/** Ends deliveries that were discarded or held for too long (D32, D44). */
@Injectable()
export class DiscardDeliveries {
  /** Positions of runs that stopped at MAX_REFUSED, by what they discard; the next run continues there. */
  private readonly left = boundedCache<Set<string>>(RUNS_LEFT);

  constructor(private readonly discards: DiscardsRepository) {}

  /**
   * Ends all deliveries that `which` names, in steps, and returns their number. A delivery that is locked or that
   * PostgreSQL refuses is left to a later run and does not hold up the others (D43).
   * @throws AggregateError after all others, if some were refused; a database error if it is unavailable
   */
  async discard(which: Discards, { stopping, maxSteps = Infinity }: DiscardOptions = {}): Promise<number> {
    const name = Object.values(which).join();
    const passedOver = this.left.get(name) ?? new Set<string>();
    const walk: Walk = { which, maxSteps, passedOver, refusals: [], steps: 0 };
    this.left.delete(name);
    const total = await purgeWhileMore(() => this.step(walk), stopping);
    if (hasRefusedMost(walk) && walk.passedOver.size < MAX_PASSED_OVER) this.left.set(name, walk.passedOver);
    throwRefusals(walk);
    return total;
  }

  private async step(walk: Walk): Promise<PurgeStep> {
    const ids = await this.discards.list(walk.which, STEP_ROWS, [...walk.passedOver]);
    let purged = 0;
    if (ids.length > 0)
      await handleApart(ids, {
        handle: async (some) => void (purged += await this.discardSome(walk, some)),
        failed: (id, error) => {
          walk.passedOver.add(id);
          walk.refusals.push({ id, error });
        },
      });
    walk.steps++;
    return { purged, more: ids.length === STEP_ROWS && walk.steps < walk.maxSteps && !hasRefusedMost(walk) };
  }

  private async discardSome(walk: Walk, ids: readonly string[]): Promise<number> {
    if (hasRefusedMost(walk)) return 0;
    const ended = new Set(await this.discards.discard(walk.which, ids));
    for (const id of ids) if (!ended.has(id)) walk.passedOver.add(id);
    return ended.size;
  }
}

function hasRefusedMost({ refusals }: Walk): boolean {
  return refusals.length >= MAX_REFUSED;
}

function throwRefusals({ refusals }: Walk): void {
  if (refusals.length === 0) return;
  const named = refusals.slice(0, MAX_NAMED);
  const text = named.map(({ id, error }) => `${id}: ${String(error)}`).join('; ');
  const others = refusals.length - named.length;
  throw new AggregateError(
    named.map(({ error }) => error),
    others > 0 ? `${text}; and ${others} more` : text,
  );
}
