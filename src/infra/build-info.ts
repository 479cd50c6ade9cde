import type { Registry } from 'prom-client';
import { gaugeIn } from './metrics.js';
import { PACKAGE_ROOT } from './package-root.js';

/** Shows which version runs on which Node.js: what changed when a number did. */
export function showBuildInfo(registry: Registry): void {
  gaugeIn(registry, {
    name: 'service_build_info',
    help: 'Always 1; its labels say what runs.',
    labelNames: ['version', 'node'],
  }).set({ version: PACKAGE_ROOT.version, node: process.version }, 1);
}
