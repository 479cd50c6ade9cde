import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Registry } from 'prom-client';
import { gaugeIn } from './metrics.js';

/** Shows which version runs on which Node.js: what changed when a number did. */
export function showBuildInfo(registry: Registry): void {
  gaugeIn(registry, {
    name: 'service_build_info',
    help: 'Always 1; its labels say what runs.',
    labelNames: ['version', 'node'],
  }).set({ version: packageVersion(import.meta.dirname), node: process.version }, 1);
}

/** From the source or from `dist`, the nearest package.json above is the service's. */
function packageVersion(folder: string): string {
  try {
    const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as {
      version?: unknown;
    };
    if (typeof version === 'string') return version;
  } catch {
    // Not here.
  }
  const above = path.dirname(folder);
  return above === folder ? 'unknown' : packageVersion(above);
}
