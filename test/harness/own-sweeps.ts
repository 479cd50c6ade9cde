import { eventually } from './eventually.js';
import type { TestService } from './service.js';

/**
 * Waits until the worker of `service` has run these sweeps. Purges run once some seconds after the start, and then not for
 * minutes: without this wait one may come between the steps of a test that does its work by hand.
 */
export async function ownSweepsHaveRun(
  { process }: Pick<TestService, 'process'>,
  ...names: readonly string[]
): Promise<void> {
  await eventually(`${names.join(' and ')} have run`, async () => {
    const runs = await process.resources.metrics.getSingleMetricAsString('sweep_runs_total');
    return names.every((name) => new RegExp(`sweep="${name}",outcome="ok"[^}]*\\} [1-9]`).test(runs));
  });
}
