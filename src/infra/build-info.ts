import type { Registry } from 'prom-client';
import { gaugeIn } from './metrics.js';
import { PACKAGE_ROOT } from './package-root.js';

/** Shows the running version and Node.js version, which helps to explain changed metrics. */
export function showBuildInfo(registry: Registry): void {
  gaugeIn(registry, {
    name: 'service_build_info',
    help: 'Always 1. The labels show the running build.',
    labelNames: ['version', 'node'],
  }).set({ version: PACKAGE_ROOT.version, node: process.version }, 1);
}
