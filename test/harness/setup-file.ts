import 'reflect-metadata';
import module from 'node:module';
import { afterAll, vi } from 'vitest';

// vitest calls it in each process at its end, all of which end at once: half a second of CPU each, to write again what the
// global setup has left there.
Object.assign(module, { flushCompileCache: () => undefined });

// Files share a process: what one has replaced in it, and not put back because a test of it failed, is not the next one's.
afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});
