import 'reflect-metadata';
import { afterAll, vi } from 'vitest';

// Files share a process: what one has replaced in it, and not put back because a test of it failed, is not the next one's.
afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});
