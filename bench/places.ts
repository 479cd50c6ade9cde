import path from 'node:path';

/** The project's folder; this file runs as dist/bench/places.js. */
export const ROOT = path.resolve(import.meta.dirname, '../..');
/** Git-ignored. */
export const RESULTS = path.join(ROOT, 'bench/results');
/** As the npm scripts start the service: source maps cost memory. */
export const NODE_FLAGS = ['--enable-source-maps'];
