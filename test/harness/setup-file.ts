import 'reflect-metadata';
import module from 'node:module';
import { afterAll, vi } from 'vitest';

// vitest calls it at the end of each process. All end at once, and each would spend half a second of CPU to write again
// the files that the global setup has already written.
Object.assign(module, { flushCompileCache: () => undefined });

// Test files share a process. A mock that a failed test did not restore must not affect the next file.
afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});
