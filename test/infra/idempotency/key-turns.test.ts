import { describe, expect, it } from 'vitest';
import { KeyTurns } from '../../../src/infra/idempotency/key-turns.js';

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

describe('KeyTurns', () => {
  it('lets the calls of one key go one at a time, in order, and other keys at once', async () => {
    const turns = new KeyTurns();
    const first = deferred();
    const seen: string[] = [];
    const a = turns.take('k', async () => {
      await first.promise;
      seen.push('a');
    });
    const b = turns.take('k', () => Promise.resolve(void seen.push('b')));
    await turns.take('other', () => Promise.resolve(void seen.push('other')));
    first.resolve();
    await Promise.all([a, b]);
    expect(seen).toEqual(['other', 'a', 'b']);
  });

  it('refuses with idempotency_in_progress after the wait limit, and keeps the order for those behind', async () => {
    const turns = new KeyTurns(20);
    const first = deferred();
    const seen: string[] = [];
    const a = turns.take('k', async () => {
      await first.promise;
      seen.push('a');
    });
    await expect(turns.take('k', () => Promise.resolve(void seen.push('b')))).rejects.toMatchObject({
      code: 'idempotency_in_progress',
      headers: { 'Retry-After': '1' },
    });
    first.resolve();
    await a;
    await turns.take('k', () => Promise.resolve(void seen.push('c')));
    expect(seen).toEqual(['a', 'c']);
  });

  it('passes the turn on when a call fails', async () => {
    const turns = new KeyTurns();
    const failing = turns.take('k', () => Promise.reject(new Error('no')));
    const next = turns.take('k', () => Promise.resolve('yes'));
    await expect(failing).rejects.toThrow('no');
    await expect(next).resolves.toBe('yes');
  });
});
