import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { builtService } from './test/harness/built-service.plugin.js';
import { SlowFirstSequencer } from './test/harness/slow-first.sequencer.js';

// A third of the time that a process of tests, or a role that they start, takes to begin is compiling its modules.
process.env['NODE_COMPILE_CACHE'] ??= path.resolve(import.meta.dirname, 'node_modules/.cache/compiled');

/**
 * Files that leave nothing behind in their process, and measure neither its memory nor fractions of a second: they follow
 * each other in a few processes, so that each loads the service once. All others, new ones too, have one of their own.
 */
const SHARING = [
  'test/{alerts,api-keys,auth,catalog,catalog-sync,config,docs,mutants,openapi,orders-live,partners,topups,wallet}/**/*.test.ts',
  'test/call-log/**/*.test.ts',
  'test/e2e/!(embedded-*).test.ts',
  'test/esim-sync/*.test.ts',
  'test/infra/{batching,crypto,database,http,idempotency,jobs,network,sweeps}/*.test.ts',
  'test/live/*.test.ts',
  'test/providers/!(provider-rate-limiter).test.ts',
  'test/providers/contract/*.test.ts',
  'test/reconciliation/!(command).test.ts',
  'test/webhooks/{admin,blocking,concurrency,concurrency-other-worker,delivery,delivery-log,delivery-rules,fencing}.test.ts',
  'test/webhooks/{feed-late-commits,feed-late-commits-deaths,hostile-service,large-backlog}.test.ts',
  'test/webhooks/{leases-locked-row,metrics-count-fails,replay-pace,ssrf-service}.test.ts',
  'test/webhooks/{isolation,outcome-batcher,replay,replay-selection,response-headers,retention-and-resends,rotation,safe-text}.test.ts',
  'test/webhooks/{schedule,schedule-transitions,sender-failures,signature}.test.ts',
  'test/webhooks/{switch,switch-after-test,switch-discard,switch-slow-start,target-policy}.test.ts',
];

export default defineConfig({
  plugins: [builtService(import.meta.dirname)],
  test: {
    projects: [
      { extends: true, test: { name: 'own process', include: ['test/**/*.test.ts'], exclude: SHARING } },
      { extends: true, test: { name: 'shared process', include: SHARING, isolate: false } },
    ],
    environment: 'node',
    server: { deps: { external: [/\/dist\/(src|migrations|chaos)\//] } },
    pool: 'forks',
    // Two cores, and tests that mostly wait: more files at once make each other’s deadlines late.
    maxWorkers: 3,
    sequence: { sequencer: SlowFirstSequencer },
    globalSetup: ['test/harness/global-setup.ts'],
    setupFiles: ['test/harness/setup-file.ts'],
    hookTimeout: 120_000,
    testTimeout: 90_000,
    retry: 0,
    // The cache ignores tsconfig changes and would keep a stale green.
    fsModuleCache: false,
    reporters: ['default', './test/harness/closing-line.reporter.ts'],
  },
});
