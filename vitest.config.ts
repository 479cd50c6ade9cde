import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { builtService } from './test/harness/built-service.plugin.js';
import { PATIENCE_MS } from './test/harness/eventually.js';
import { FileOrderSequencer } from './test/harness/file-order.sequencer.js';

// A third of the time that a process of tests, or a role that they start, takes to begin is compiling its modules.
process.env['NODE_COMPILE_CACHE'] ??= path.resolve(import.meta.dirname, 'node_modules/.cache/compiled');

/**
 * Files that measure the memory, the event loop, fractions of a second or every connection of their process, or change what is
 * global in it.
 * All others leave nothing behind: they follow each other in a few processes, so that each loads the service once.
 */
const OWN_PROCESS = [
  'test/embedded/postgres/*.test.ts',
  'test/esim-sync/dripping-callbacks.test.ts',
  'test/infra/logging/*.test.ts',
  'test/openapi/event-loop.test.ts',
  'test/webhooks/{hanging-endpoints,ssrf}.test.ts',
];

export default defineConfig({
  plugins: [builtService(import.meta.dirname)],
  test: {
    projects: [
      { extends: true, test: { name: 'own process', include: OWN_PROCESS } },
      {
        extends: true,
        test: {
          name: 'shared process',
          include: ['test/**/*.test.ts'],
          exclude: OWN_PROCESS,
          isolate: false,
        },
      },
    ],
    environment: 'node',
    pool: 'forks',
    // More processes than cores: V8's own threads, which collect garbage and compile, only take turns with them.
    execArgv: ['--single-threaded'],
    // Two cores, and tests that wait for half of their time.
    maxWorkers: 8,
    sequence: { sequencer: FileOrderSequencer },
    globalSetup: ['test/harness/global-setup.ts'],
    setupFiles: ['test/harness/setup-file.ts'],
    // PostgreSQL's stop at the end: past it vitest would leave the server and its folder behind.
    teardownTimeout: 60_000,
    // Longer than one wait, which says what did not come.
    testTimeout: PATIENCE_MS + 60_000,
    hookTimeout: PATIENCE_MS + 60_000,
    retry: 0,
    // The cache ignores tsconfig changes and would keep a stale green.
    fsModuleCache: false,
    reporters: ['default', './test/harness/closing-line.reporter.ts'],
  },
});
