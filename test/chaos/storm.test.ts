import { randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { FAULT_GROUPS, type FaultGroup } from '../../chaos/faults.js';
import { runStorm } from '../../chaos/storm.js';
import { size } from '../harness/size.js';

const SEED = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
const SECONDS = size('STORM_SECONDS', 30, 300);
/** Orders per second, half of them live. */
const RATE = size('STORM_RATE', 4, 12);
const MAX_ORDERS = size('STORM_ORDERS', 120, 5_000);
/** The full size adds the storm of `npm run chaos`, whose crashes and silence may lose the outcome of an attempt. */
const STORMS: readonly (readonly FaultGroup[])[] = [['deaths' as const], FAULT_GROUPS].slice(
  0,
  size('STORMS', 1, 2),
);
/** Shorter than the longest freeze, so that another worker takes over, and longer than a busy machine stalls. */
const LEASE_MS = '6000';

describe(`a storm over processes of every role (CHAOS_SEED=${SEED})`, () => {
  it.each(STORMS.map((faults) => ({ faults, names: faults.join(', ') })))(
    'loses and duplicates nothing: $names',
    async ({ faults }) => {
      const options = {
        seconds: SECONDS,
        seed: SEED,
        rate: RATE,
        maxOrders: MAX_ORDERS,
        faults,
        redis: false,
        env: { LEASE_MS },
      };
      const { summary, verdict } = await runStorm(options, () => undefined);
      console.log([`CHAOS_SEED=${SEED}`, ...summary].join('\n'));
      for (const { promise, breaches } of verdict) expect(breaches, promise).toEqual([]);
      const accepted = verdict.find(({ promise }) => promise.startsWith('each accepted order'))!;
      expect(accepted.count).toBeGreaterThan(SECONDS);
    },
    900_000,
  );
});
