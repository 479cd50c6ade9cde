import { defineConfig } from 'vitest/config';
import { SlowFirstSequencer } from './test/harness/slow-first.sequencer.js';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    pool: 'forks',
    // Two cores, and tests that mostly wait: more files at once make each other's deadlines late.
    maxWorkers: 3,
    sequence: { sequencer: SlowFirstSequencer },
    globalSetup: ['test/harness/global-setup.ts'],
    setupFiles: ['test/harness/setup-file.ts'],
    hookTimeout: 60_000,
    testTimeout: 30_000,
    retry: 0,
    // The cache ignores tsconfig changes and would keep a stale green.
    fsModuleCache: false,
    reporters: ['default', './test/harness/closing-line.reporter.ts'],
  },
});
