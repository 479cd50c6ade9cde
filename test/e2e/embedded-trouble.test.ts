import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import type { NodeChild } from '../harness/child-process.js';
import { EmbeddedPlace, readBanner } from '../harness/embedded-start.js';

/** 5 s are promised on an idle machine; this one may run other tests meanwhile. */
/** An end for what would never come. */
const STOP_MS = 60_000;

let place: EmbeddedPlace;

beforeAll(async () => {
  place = await EmbeddedPlace.make();
});

afterAll(() => place.remove());

async function start(env: Record<string, string> = {}): Promise<NodeChild> {
  const child = place.launch(env);
  await child.ready();
  return child;
}

const works = async (child: NodeChild): Promise<boolean> =>
  (await readBanner(child).api.get('/v1/orders')).status === 200;

async function expectStop(child: NodeChild, signal: 'SIGINT' | 'SIGTERM'): Promise<void> {
  const signaledAt = performance.now();
  child.signal(signal);
  expect(await child.exited()).toBe(0);
  expect(performance.now() - signaledAt).toBeLessThan(STOP_MS);
}

describe('npm start', () => {
  it('can be interrupted at any moment of its first start: nothing stays behind, and the next one comes up', async () => {
    for (const afterMs of [400, 1_500, 2_500, 3_500]) {
      const child = place.launch();
      await sleep(afterMs);
      const signaledAt = performance.now();
      child.signal('SIGINT');
      await child.exited();
      expect(performance.now() - signaledAt).toBeLessThan(STOP_MS);
      await eventually(`no PostgreSQL is left`, async () => (await place.postgresPids()).length === 0);
    }
    const child = await start();
    expect(await works(child)).toBe(true);
    await expectStop(child, 'SIGTERM');
    expect(await place.postgresPids()).toEqual([]);
  });

  it('says so and ends when its PostgreSQL is killed, and comes up again with its data', async () => {
    const child = await start();
    const { key } = readBanner(child);
    await place.killPostgres();
    expect(await child.exited()).toBe(1);
    expect(child.stderr).toMatch(/PostgreSQL ended/);
    const next = await start();
    expect((await readBanner(next).api.get('/v1/me', { authorization: `Bearer ${key}` })).status).toBe(200);
    await expectStop(next, 'SIGINT');
  });
});
