import { afterEach, describe, expect, it, vi } from 'vitest';
import type { AttemptPhase } from '../../src/webhooks/delivery.js';
import type { PhaseClock } from '../../src/webhooks/worker/attempt-result.js';
import { RunningAttempts } from '../../src/webhooks/worker/running-attempts.js';

interface Given {
  readonly id: string;
  readonly phase: AttemptPhase;
}

let nowMs = 0;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Attempts that never end, and the statements that store their phases. */
function runningAttempts() {
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const statements: (readonly Given[])[] = [];
  const answers: ((given: readonly Given[]) => Promise<ReadonlySet<string>>)[] = [];
  const running = new RunningAttempts({
    storePhases: (given) => {
      statements.push(given);
      const answer = answers.shift() ?? stored;
      return answer(given);
    },
  });
  const begin = (id: string): PhaseClock => {
    let clock: PhaseClock | undefined;
    void running.watch({ id, fence: '1' }, (its) => {
      clock = its;
      return new Promise(() => undefined);
    });
    return clock!;
  };
  const store = async (): Promise<readonly string[][]> => {
    await running.storePhases();
    return statements.splice(0).map((given) => given.map(({ id, phase }) => `${id} ${phase}`));
  };
  return { running, begin, store, answers };
}

const stored = (given: readonly Given[]): Promise<ReadonlySet<string>> =>
  Promise.resolve(new Set(given.map(({ id }) => id)));

const conflict = (): Promise<never> =>
  Promise.reject(Object.assign(new Error('tuple to be locked was already moved'), { code: '40001' }));

describe('the phases of running attempts', () => {
  it('are stored after a second, and again only when they change', async () => {
    const { running, begin, store } = runningAttempts();
    const clock = begin('dlv_1');
    clock.enter('dns');
    nowMs += 1_000;
    expect(await store()).toEqual([]);
    nowMs += 1;
    expect(await store()).toEqual([['dlv_1 dns']]);
    expect(await store()).toEqual([]);
    clock.enter('connect');
    expect(await store()).toEqual([['dlv_1 connect']]);
    clock.enter('tls');
    expect(await store()).toEqual([['dlv_1 tls']]);
    clock.enter(null);
    expect(await store()).toEqual([['dlv_1 waiting']]);
    await running.watch({ id: 'dlv_2', fence: '1' }, () => Promise.resolve());
    nowMs += 1_001;
    expect(await store()).toEqual([]);
  });

  it('are tried again where the row was locked or moved, which fails no other statement', async () => {
    const { begin, store, answers } = runningAttempts();
    for (let i = 0; i < 201; i++) begin(`dlv_${i}`);
    nowMs += 1_001;
    answers.push(conflict);
    expect((await store()).map((given) => given.length)).toEqual([200, 1]);
    answers.push((given) => stored(given.slice(1)));
    expect((await store()).map((given) => given.length)).toEqual([200]);
    expect(await store()).toEqual([['dlv_0 waiting']]);
  });
});
