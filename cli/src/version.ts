import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
  engines: { readonly node: string };
};

export const VERSION = manifest.version;

/** Node.js versions that this package supports: `>=22.19`. */
export const ENGINES = manifest.engines;
