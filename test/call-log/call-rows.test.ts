import type { Pool } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CallRowsRepository, toArrayLiteral } from '../../src/call-log/call-log.repository.js';
import type { FinishedCall } from '../../src/infra/http/edge/index.js';
import { CallRowWriter } from '../../src/call-log/call-row-writer.js';
import { createTestDatabase, eventually, openPool, type TestDatabase } from '../harness/index.js';
import { finishedCall, unknownCall } from './finished-call.js';

let database: TestDatabase;
let edge: Pool;
let rows: CallRowsRepository;

beforeAll(async () => {
  database = await createTestDatabase();
  edge = openPool(database.url, 1);
  rows = new CallRowsRepository(edge);
});

afterAll(async () => {
  await edge.end();
  await database.drop();
});

async function stored(call: FinishedCall): Promise<Record<string, unknown>[]> {
  const { rows: found } = await database.pool.query('SELECT * FROM api_calls WHERE request_id = $1', [
    call.requestId,
  ]);
  return found;
}

describe('call log rows', () => {
  it('stores every field as it was recorded', async () => {
    const full = finishedCall({
      clientRequestId: 'mine',
      errorCode: 'not_found',
      replayOf: 'req_1',
      latencyMs: 0.5,
    });
    const bare = unknownCall('2001:db8::1');
    await rows.insert([full, { ...bare, route: null }]);
    expect(await stored(full)).toEqual([
      {
        request_id: full.requestId,
        client_request_id: 'mine',
        key_id: full.keyId,
        partner_id: full.partnerId,
        mode: 'sandbox',
        method: 'GET',
        route: '/v1/catalog',
        path: '/v1/catalog',
        status: 200,
        error_code: 'not_found',
        latency_ms: 0.5,
        remote_address: '203.0.113.7',
        replay_of: 'req_1',
        suppressed: null,
        created_at: full.finishedAt,
      },
    ]);
    expect(await stored(bare)).toMatchObject([{ key_id: null, partner_id: null, mode: null, route: null }]);
  });

  it.each([
    ['"'],
    ['\\'],
    ['\\"},{'],
    ['null'],
    ['NULL'],
    ['{a,b}'],
    [' , '],
    [''],
    ['\n\t'],
    ['/caf\u00e9/\u{1f4f6}'],
    ["'; --"],
  ])('stores %j in a path and an address unchanged', async (text) => {
    const call = finishedCall({ path: text, remoteAddress: text });
    await rows.insert([call, finishedCall()]);
    expect(await stored(call)).toMatchObject([{ path: text, remote_address: text }]);
  });

  it('truncates fields that the caller controls, and accepts NUL and half a surrogate pair', async () => {
    const call = finishedCall({ path: `/\0${'x'.repeat(5_000)}`, remoteAddress: 'y'.repeat(5_000) });
    const half = finishedCall({ path: `/${'x'.repeat(198)}\u{1f4f6}` });
    await rows.insert([call, half]);
    const [row] = await stored(call);
    expect((row!['path'] as string).length).toBeLessThanOrEqual(200);
    expect(row!['remote_address']).toBe('y'.repeat(64));
    expect(await stored(half)).toHaveLength(1);
  });

  it('writes each row once when a batch is repeated after a failure', async () => {
    // Includes calls from a process with a wrong clock, which are stored with the database's time.
    const calls = Array.from({ length: 10 }, (_, nth) => ({
      ...finishedCall(),
      ...(nth % 2 === 0 ? {} : { finishedAt: new Date(Date.now() - nth * 86_400_000) }),
    }));
    await rows.insert(calls.slice(0, 4));
    await rows.insertMissing(calls);
    await rows.insertMissing(calls);
    for (const call of calls) expect(await stored(call)).toHaveLength(1);
  });
});

describe('a row that PostgreSQL rejects', () => {
  it('does not block its neighbors, even when building the statement throws (D43)', async () => {
    const writer = new CallRowWriter(rows, pino({ level: 'silent' }));
    const calls = Array.from({ length: 4 }, () => finishedCall());
    const poisoned = { ...finishedCall(), remoteAddress: undefined as unknown as string };
    for (const call of [...calls.slice(0, 2), poisoned, ...calls.slice(2)]) writer.add(call);
    await eventually('the last is stored', async () => (await stored(calls.at(-1)!)).length === 1);
    await writer.close();
    for (const call of calls) expect(await stored(call)).toHaveLength(1);
  });

  it('is reported, and its neighbors are stored', async () => {
    const lines: Record<string, unknown>[] = [];
    const logger = pino(
      {},
      { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    );
    const writer = new CallRowWriter(rows, logger);
    const calls = Array.from({ length: 9 }, () => finishedCall());
    const refused = finishedCall({ status: 99_999 });
    for (const call of [...calls.slice(0, 4), refused, ...calls.slice(4)]) writer.add(call);
    await eventually('the last is stored', async () => (await stored(calls.at(-1)!)).length === 1);
    await writer.close();
    for (const call of calls) expect(await stored(call)).toHaveLength(1);
    expect(await stored(refused)).toHaveLength(0);
    expect(lines).toMatchObject([
      { event: 'call_log.row_refused', requestId: refused.requestId, err: { code: '22003' } },
      { event: 'call_log.dropped', calls: 1 },
    ]);
  });
});

it('quotes every string in array literals, so that the string NULL stays a string', () => {
  expect(toArrayLiteral(['null', null, 7, 0.5, 'a"b\\c', ''])).toBe('{"null",NULL,7,0.5,"a\\"b\\\\c",""}');
  expect(toArrayLiteral([])).toBe('{}');
});
