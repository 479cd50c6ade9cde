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
    const { values } = await process.resources.metrics.getSingleMetric('sweep_runs_total')!.get();
    return names.every((name) =>
      values.some(({ labels: { sweep, outcome }, value }) => sweep === name && outcome === 'ok' && value > 0),
    );
  });
}
