import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { startZenditSimulator, type ZenditSimulator } from '../../simulators/zendit/simulator.js';
import type { ProviderOrderRequest, ProviderProfile } from '../../src/providers/index.js';
import type { ZenditProvider } from '../../src/providers/zendit/zendit-provider.js';
import { BASE, ZenditBench } from './zendit-world.js';

/** Never aborted, because the deadlines of the calls are sufficient. */
export const { signal } = new AbortController();

let orders = 0;

export function newReference(): string {
  return `po_test${++orders}`;
}

export function newOrder(quantity = 1, changes: Partial<ProviderOrderRequest> = {}): ProviderOrderRequest {
  return {
    reference: newReference(),
    packageId: 'pkg_any',
    quantity,
    days: null,
    acceptedAt: new Date(),
    ...BASE,
    ...changes,
  };
}

/** A simulator and an adapter per test. After each test, no known purchase or refund may have been posted again. */
export class ZenditSuite {
  bench!: ZenditBench;
  simulator!: ZenditSimulator;
  provider!: ZenditProvider;
  /** Set by tests that intentionally post a known purchase. */
  duplicatesMeant = 0;

  static use(): ZenditSuite {
    const suite = new ZenditSuite();
    beforeAll(async () => {
      suite.bench = await ZenditBench.open();
    });
    beforeEach(async () => {
      suite.simulator = await startZenditSimulator();
      suite.provider = suite.bench.provider(suite.simulator);
      suite.duplicatesMeant = 0;
    });
    afterEach(() => suite.endTest());
    afterAll(() => suite.bench.close());
    return suite;
  }

  private async endTest(): Promise<void> {
    const { duplicatePosts, duplicateRefunds } = this.simulator.state();
    await this.bench.endTest();
    await this.simulator.close();
    const { duplicatesMeant } = this;
    expect({ duplicatePosts, duplicateRefunds }).toEqual({
      duplicatePosts: duplicatesMeant,
      duplicateRefunds: 0,
    });
  }

  /** Places the order and looks it up once, which is enough without faults. */
  async provision(order: ProviderOrderRequest): Promise<readonly ProviderProfile[]> {
    await this.provider.placeOrder(order, 'first', signal);
    const found = await this.provider.findOrder(order, signal);
    if (found?.state !== 'provisioned') throw new Error(`the order is ${found?.state}`);
    return found.profiles;
  }

  expectOnePurchaseEach(order: ProviderOrderRequest): void {
    const ids = Array.from({ length: order.quantity }, (_, i) => `${order.reference}-${i + 1}`);
    expect(Object.keys(this.simulator.state().purchases).sort()).toEqual(ids.sort());
  }
}
