import { eventually } from './eventually.js';
import type { TestService } from './service.js';

/**
 * Waits until the worker of `service` has run these sweeps. A purge runs some seconds after startup and then not for
 * minutes. Without this wait it may interfere with a test that calls the purge itself.
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
