import { describe, expect, it } from 'vitest';
import { KeyedMutex } from '../../../src/infra/idempotency/keyed-mutex.js';

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

describe('KeyedMutex', () => {
  it('runs the calls of one key one at a time and in order, and other keys concurrently', async () => {
    const mutex = new KeyedMutex();
    const first = deferred();
    const seen: string[] = [];
    const a = mutex.runExclusive('k', async () => {
      await first.promise;
      seen.push('a');
    });
    const b = mutex.runExclusive('k', () => Promise.resolve(void seen.push('b')));
    await mutex.runExclusive('other', () => Promise.resolve(void seen.push('other')));
    first.resolve();
    await Promise.all([a, b]);
    expect(seen).toEqual(['other', 'a', 'b']);
  });

  it('refuses with idempotency_in_progress after the wait limit, and keeps the order of the rest', async () => {
    const mutex = new KeyedMutex(20);
    const first = deferred();
    const seen: string[] = [];
    const a = mutex.runExclusive('k', async () => {
      await first.promise;
      seen.push('a');
    });
    await expect(mutex.runExclusive('k', () => Promise.resolve(void seen.push('b')))).rejects.toMatchObject({
      code: 'idempotency_in_progress',
      headers: { 'Retry-After': '1' },
    });
    first.resolve();
    await a;
    await mutex.runExclusive('k', () => Promise.resolve(void seen.push('c')));
    expect(seen).toEqual(['a', 'c']);
  });

  it('releases the key when a call fails', async () => {
    const mutex = new KeyedMutex();
    const failing = mutex.runExclusive('k', () => Promise.reject(new Error('no')));
    const next = mutex.runExclusive('k', () => Promise.resolve('yes'));
    await expect(failing).rejects.toThrow('no');
    await expect(next).resolves.toBe('yes');
  });
});
