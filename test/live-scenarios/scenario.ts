import fc from 'fast-check';
import { FAULTS } from './faults.js';

/** One step. Numbers that select an item are taken modulo the number of items. */
export type Step =
  | { readonly do: 'deposit' | 'adjust'; readonly buyer: number; readonly amount: number }
  | {
      readonly do: 'order';
      readonly buyer: number;
      readonly item: number;
      readonly quantity: number;
      /** Of a day pass. */
      readonly days: number;
      /** Number of identical concurrent calls. */
      readonly times: number;
    }
  | { readonly do: 'await'; readonly nth: number }
  | {
      readonly do: 'cancel' | 'topup';
      readonly nth: number;
      /** Waits for the order to end first. */
      readonly later: boolean;
    }
  | {
      readonly do: 'support';
      readonly nth: number;
      readonly action: 'requery' | 'mark_issued' | 'mark_failed';
    }
  | { readonly do: 'fault'; readonly name: string }
  | { readonly do: 'calm' }
  | { readonly do: 'pause'; readonly ms: number }
  | { readonly do: 'worker'; readonly nth: number; readonly how: 'stop' | 'kill' };

export interface Scenario {
  readonly buyers: number;
  readonly steps: readonly Step[];
}

const small = fc.nat({ max: 7 });
const buyer = fc.nat({ max: 2 });
const usually = fc.nat({ max: 4 }).map((n) => n > 0);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('deposit' as const),
      buyer,
      amount: fc.integer({ min: 1, max: 3_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('adjust' as const),
      buyer,
      amount: fc.integer({ min: -500, max: 500 }).filter((n) => n !== 0),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('order' as const),
      buyer,
      item: small,
      quantity: fc.integer({ min: 1, max: 5 }),
      days: fc.integer({ min: 1, max: 9 }),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('await' as const), nth: small }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel' as const), nth: small, later: usually }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('topup' as const), nth: small, later: usually }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('support' as const),
      nth: small,
      action: fc.constantFrom('requery' as const, 'mark_issued' as const, 'mark_failed' as const),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      name: fc.constantFrom(...Object.keys(FAULTS)),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'calm' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('pause' as const), ms: fc.integer({ min: 1, max: 400 }) }),
  },
);

const death: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('worker' as const),
  nth: fc.nat({ max: 1 }),
  how: fc.constantFrom('kill' as const, 'kill' as const, 'stop' as const),
});

const quiet = fc.array(step, { minLength: 4, maxLength: 12 });
/** Killing a process takes seconds, so only some scenarios do it. */
const deadly = fc
  .tuple(quiet, death, fc.nat({ max: 12 }))
  .map(([steps, end, at]) => [...steps.slice(0, at), end, ...steps.slice(at)]);

/** Starts with money and an order, so that hardly any scenario is empty. */
export const scenario: fc.Arbitrary<Scenario> = fc
  .record({
    buyers: fc.integer({ min: 1, max: 3 }),
    cents: fc.integer({ min: 300, max: 6_000 }),
    steps: fc.oneof({ weight: 9, arbitrary: quiet }, { weight: 1, arbitrary: deadly }),
  })
  .map(({ buyers, cents, steps }) => ({
    buyers,
    steps: [
      ...Array.from({ length: buyers }, (_, i): Step => ({ do: 'deposit', buyer: i, amount: cents })),
      ...steps,
    ],
  }));
