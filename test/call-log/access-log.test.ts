import { pino, type Logger } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LastUsedRepository } from '../../src/api-keys/index.js';
import { AccessLog } from '../../src/call-log/access-log.js';
import { CallRowsRepository } from '../../src/call-log/call-log.repository.js';
import type { FinishedCall } from '../../src/infra/http/edge/index.js';
import { finishedCall, unknownCall } from './finished-call.js';

interface Statement {
  readonly name: string;
  readonly requestIds: readonly string[];
}

/** Accepts statements like the edge's pool. `answer` decides how each one ends. */
class FakePool {
  readonly statements: Statement[] = [];
  readonly written: string[] = [];
  /** Values of the last column, where it is set. */
  readonly suppressed: number[] = [];
  answer: () => Promise<void> = () => Promise.resolve();

  async query({ name, values }: { name: string; values: unknown[] }): Promise<void> {
    // The first column, `{"req_1","req_2"}`.
    const requestIds = JSON.parse(`[${String(values[0]).slice(1, -1)}]`) as string[];
    this.statements.push({ name, requestIds });
    await this.answer();
    this.written.push(...requestIds);
    this.suppressed.push(...[...String(values.at(-1)).matchAll(/\d+/g)].map(Number));
  }
}

function startAccessLog() {
  const pool = new FakePool();
  const lines: Record<string, unknown>[] = [];
  const logger: Logger = pino(
    { level: 'info' },
    { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const touched: string[][] = [];
  const keys = {
    touch: (ids: readonly string[]) => Promise.resolve(void touched.push([...ids])),
  } as LastUsedRepository;
  const rows = new CallRowsRepository(pool as never);
  const accessLog = new AccessLog(rows, keys, logger);
  const linesOf = (event: string) => lines.filter((line) => line['event'] === event);
  const recordMany = (calls: readonly FinishedCall[]) => calls.forEach((call) => accessLog.record(call));
  return { pool, accessLog, recordMany, linesOf, touched, keys };
}

const many = (count: number, make: () => FinishedCall = finishedCall) => Array.from({ length: count }, make);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe('batches', () => {
  it("writes nothing during a call's event loop turn, and the calls of 200 ms in one statement", async () => {
    const { pool, recordMany } = startAccessLog();
    const rowsOfStatements = () => pool.statements.map(({ name, requestIds }) => [name, requestIds.length]);
    recordMany(many(3));
    await Promise.resolve();
    expect(pool.statements).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(0);
    expect(rowsOfStatements()).toEqual([['insert-calls', 3]]);
    recordMany(many(2));
    await vi.advanceTimersByTimeAsync(100);
    recordMany(many(4));
    await vi.advanceTimersByTimeAsync(99);
    expect(pool.statements).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(rowsOfStatements().slice(1)).toEqual([['insert-calls', 6]]);
  });

  it('flushes before the 200 ms are over once 500 calls are queued', async () => {
    const { pool, recordMany } = startAccessLog();
    recordMany(many(500));
    await vi.advanceTimersByTimeAsync(0);
    expect(pool.statements[0]?.requestIds).toHaveLength(500);
    recordMany(many(1));
    await vi.advanceTimersByTimeAsync(200);
    expect(pool.written).toHaveLength(501);
  });

  it('runs one statement at a time and sends what queued up in the next one', async () => {
    const { pool, recordMany } = startAccessLog();
    let finish = (): void => undefined;
    pool.answer = () => new Promise((resolve) => (finish = resolve));
    recordMany(many(500));
    await vi.advanceTimersByTimeAsync(0);
    recordMany(many(1_200));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(pool.statements).toHaveLength(1);
    pool.answer = () => Promise.resolve();
    finish();
    await vi.advanceTimersByTimeAsync(0);
    expect(pool.statements.map(({ requestIds }) => requestIds.length)).toEqual([500, 1_200]);
  });
});

describe('refused calls of a known key (D45)', () => {
  it('stores 60 rows per status and minute plus one with the count of the rest, and logs a line for every call', async () => {
    const { pool, recordMany, linesOf } = startAccessLog();
    const refused = (status: number) => many(100, () => finishedCall({ status }));
    recordMany([...refused(403), ...refused(429), ...many(100)]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(pool.written).toHaveLength(60 + 60 + 100);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(pool.written).toHaveLength(60 + 60 + 100 + 2);
    expect(pool.suppressed).toEqual([40, 40]);
    expect(linesOf('http.call')).toHaveLength(300);
    recordMany(refused(429));
    await vi.advanceTimersByTimeAsync(61_000);
    expect(pool.suppressed).toEqual([40, 40, 40]);
  });

  it('counts each key separately and writes the counts when it stops', async () => {
    const { pool, accessLog, recordMany } = startAccessLog();
    for (const keyId of ['key_a', 'key_b']) recordMany(many(70, () => finishedCall({ keyId, status: 429 })));
    await accessLog.close();
    expect(pool.suppressed).toEqual([10, 10]);
    expect(pool.written).toHaveLength(122);
  });
});

describe('call log failures', () => {
  it('loses no line or row of other calls when one call fails (D43)', async () => {
    const { pool, recordMany, linesOf } = startAccessLog();
    const [one, other] = many(2);
    recordMany([one!, finishedCall({ finishedAt: new Date(NaN) }), other!]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(pool.written).toEqual([one!.requestId, other!.requestId]);
    expect(linesOf('http.call').map((line) => line['requestId'])).toEqual(pool.written);
    expect(linesOf('call_log.failed')).toHaveLength(1);
  });

  it('updates last_used_at of the other keys when one key fails (D43)', async () => {
    const { recordMany, keys, touched } = startAccessLog();
    keys.touch = (ids) => {
      const refused = Object.assign(new Error('invalid byte sequence'), { code: '22021' });
      return ids.includes('key_bad') ? Promise.reject(refused) : Promise.resolve(void touched.push([...ids]));
    };
    recordMany(['key_a', 'key_bad', 'key_b'].map((keyId) => finishedCall({ keyId })));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(touched.flat()).toEqual(['key_a', 'key_b']);
  });

  it('keeps the rows of a failing statement and writes the missing ones in order', async () => {
    const { pool, recordMany, linesOf } = startAccessLog();
    pool.answer = () => Promise.reject(new Error('gone'));
    const calls = many(5);
    recordMany(calls);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(pool.written).toHaveLength(0);
    expect(linesOf('call_log.write_failed').length).toBeGreaterThan(2);
    pool.answer = () => Promise.resolve();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(pool.written).toEqual(calls.map((call) => call.requestId));
    expect(pool.statements.at(-1)?.name).toBe('insert-missing-calls');
    recordMany(many(1));
    await vi.advanceTimersByTimeAsync(200);
    expect(pool.statements.at(-1)?.name).toBe('insert-calls');
  });

  it('backs off to 5 s', async () => {
    const { pool, recordMany } = startAccessLog();
    pool.answer = () => Promise.reject(new Error('gone'));
    recordMany(many(1));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(pool.statements.length).toBeGreaterThan(10);
    expect(pool.statements.length).toBeLessThan(20);
  });

  it('keeps the newest 50,000 rows, counts the others, and logs the count once a minute', async () => {
    const { pool, recordMany, linesOf } = startAccessLog();
    pool.answer = () => Promise.reject(new Error('gone'));
    const calls = many(53_000);
    recordMany(calls);
    await vi.advanceTimersByTimeAsync(61_000);
    expect(linesOf('call_log.dropped')).toMatchObject([{ calls: 3_000 }]);
    pool.answer = () => Promise.resolve();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(pool.written).toEqual(calls.slice(3_000).map((call) => call.requestId));
    expect(linesOf('http.call')).toHaveLength(53_000);
  });
});

describe('calls without a known key', () => {
  it('stores 60 rows per address, logs a line for every call, and logs the count of the rest once a minute', async () => {
    const { pool, recordMany, linesOf } = startAccessLog();
    recordMany(many(100, () => unknownCall('198.51.100.1')));
    recordMany(many(5, () => unknownCall('198.51.100.2')));
    recordMany(many(5));
    await vi.advanceTimersByTimeAsync(200);
    expect(pool.written).toHaveLength(70);
    expect(linesOf('http.call')).toHaveLength(110);
    expect(linesOf('call_log.capped')).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(linesOf('call_log.capped')).toMatchObject([{ calls: 40 }]);
  });

  it('stores 600 rows from all addresses and every row of a known key, and counts the rest as one (D45)', async () => {
    const { pool, recordMany, linesOf } = startAccessLog();
    recordMany(Array.from({ length: 2_000 }, (_, n) => unknownCall(`2001:db8:0:${n.toString(16)}::1`)));
    recordMany(many(700));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(pool.written).toHaveLength(600 + 700);
    expect(linesOf('http.call')).toHaveLength(2_700);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(linesOf('call_log.capped')).toMatchObject([{ calls: 1_400 }]);
  });
});

describe('call log lines', () => {
  it('identifies the call and omits the path when the route is known', async () => {
    const { recordMany, linesOf } = startAccessLog();
    const call = finishedCall({ replayOf: 'req_01KAEXAMPLE000000000000000', latencyMs: 1.23456 });
    recordMany([call]);
    await vi.advanceTimersByTimeAsync(200);
    const [line] = linesOf('http.call');
    const { level, time, pid, hostname, ...fields } = line!;
    expect([level, time, pid, hostname]).not.toContain(undefined);
    expect(fields).toEqual({
      event: 'http.call',
      requestId: call.requestId,
      keyId: call.keyId,
      partnerId: call.partnerId,
      method: 'GET',
      route: '/v1/catalog',
      status: 200,
      latencyMs: 1.235,
      mode: 'sandbox',
      replayOf: call.replayOf,
      finishedAt: call.finishedAt.toISOString(),
    });
  });

  it('truncates an unknown path to 200 characters and redacts a key in it', async () => {
    const { recordMany, linesOf } = startAccessLog();
    const key = `svc_${'sk'}_live_${'a'.repeat(32)}`;
    recordMany([
      finishedCall({ route: null, path: `/v1/${'x'.repeat(500)}` }),
      finishedCall({ route: null, path: `/v1/${key}/orders` }),
    ]);
    await vi.advanceTimersByTimeAsync(200);
    const paths = linesOf('http.call').map((line) => line['path'] as string);
    expect(paths[0]).toHaveLength(200);
    expect(paths[1]).toBe(`/v1/svc_${'sk'}_live_[redacted]/orders`);
  });
});

describe('last use of a key', () => {
  it('writes it once per minute and key', async () => {
    const { recordMany, touched } = startAccessLog();
    for (let i = 0; i < 10; i++) {
      recordMany([
        finishedCall({ keyId: 'key_a' }),
        finishedCall({ keyId: 'key_b' }),
        unknownCall('198.51.100.1'),
      ]);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(touched).toEqual([['key_a', 'key_b']]);
    await vi.advanceTimersByTimeAsync(60_000);
    recordMany([finishedCall({ keyId: 'key_a' })]);
    await vi.advanceTimersByTimeAsync(200);
    expect(touched).toEqual([['key_a', 'key_b'], ['key_a']]);
  });

  it('writes it with the next call after a failure', async () => {
    const { recordMany, touched, keys } = startAccessLog();
    const failing = vi.spyOn(keys, 'touch').mockRejectedValue(new Error('gone'));
    recordMany([finishedCall({ keyId: 'key_a' })]);
    await vi.advanceTimersByTimeAsync(200);
    failing.mockRestore();
    recordMany([finishedCall({ keyId: 'key_a' })]);
    await vi.advanceTimersByTimeAsync(200);
    expect(touched).toEqual([['key_a']]);
  });
});

describe('a graceful stop', () => {
  it('flushes calls that were just recorded', async () => {
    const { pool, accessLog, recordMany } = startAccessLog();
    recordMany(many(10));
    await accessLog.onApplicationShutdown();
    expect(pool.written).toHaveLength(10);
    await accessLog.close();
    expect(pool.written).toHaveLength(10);
  });

  it('skips a pause, retries for 2 s, and then logs what was lost', async () => {
    const { pool, accessLog, recordMany, linesOf } = startAccessLog();
    pool.answer = () => Promise.reject(new Error('gone'));
    recordMany(many(10));
    await vi.advanceTimersByTimeAsync(30_000);
    const before = pool.statements.length;
    const closed = accessLog.close();
    await vi.advanceTimersByTimeAsync(3_000);
    await closed;
    expect(pool.statements.length - before).toBeGreaterThan(10);
    expect(linesOf('call_log.dropped')).toMatchObject([{ calls: 10 }]);
  });

  it('ends even if a statement hangs', async () => {
    const { pool, accessLog, recordMany } = startAccessLog();
    pool.answer = () => new Promise(() => undefined);
    recordMany(many(10));
    const closed = accessLog.close();
    await vi.advanceTimersByTimeAsync(5_000);
    await closed;
  });
});
