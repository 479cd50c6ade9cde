import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { NodeChild } from '../harness/child-process.js';
import { EmbeddedPlace, readBanner } from '../harness/embedded-start.js';
import { eventually, HttpClient, PATIENCE_MS } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

const OFF = { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' };
const token = randomBytes(24).toString('hex');

async function newPlace(): Promise<EmbeddedPlace> {
  const place = await EmbeddedPlace.make();
  onTestFinished(() => place.remove());
  return place;
}

async function start(place: EmbeddedPlace, env: Record<string, string> = {}): Promise<NodeChild> {
  const child = place.launch(env);
  await child.ready();
  return child;
}

async function stop(child: NodeChild): Promise<void> {
  child.signal('SIGINT');
  expect(await child.exited()).toBe(0);
}

/** Polls until `/readyz` returns 200, like an orchestrator but faster. */
async function untilReady({ adminPort }: EmbeddedPlace): Promise<void> {
  const ask = (): Promise<number> =>
    fetch(`http://127.0.0.1:${adminPort}/readyz`).then(
      ({ status }) => status,
      () => 0,
    );
  const deadline = performance.now() + PATIENCE_MS;
  while ((await ask()) !== 200) {
    if (performance.now() > deadline) throw new Error('/readyz never answered 200');
    await sleep(2);
  }
}

describe('npm start', () => {
  it('reports ready only once it is usable, with or without the demo receiver', async () => {
    const place = await newPlace();
    const first = place.launch({ ADMIN_TOKENS: `portal:${token}` });
    await untilReady(place);
    const admin = new HttpClient(`http://127.0.0.1:${place.adminPort}`, token);
    const partners = await admin.get('/internal/v1/partners');
    expect(partners.body.data, partners.text).toMatchObject([{ name: 'Demo Travel' }]);
    const id = partners.body.data[0].id as string;
    const { body } = await admin.post(`/internal/v1/partners/${id}/api-keys`, { mode: 'live' });
    const live = new HttpClient(`http://127.0.0.1:${place.port}`, body.data.key as string);
    expect((await live.get('/v1/catalog?kind=base&limit=1')).body.data).toHaveLength(1);
    await first.ready();
    await stop(first);

    // Without the demo receiver it prints that webhooks are off, and the next start with it receives its webhooks.
    const without = await start(place, OFF);
    expect(without.stdout).toMatch(/webhooks: off .*WEBHOOK_ALLOW_PRIVATE_TARGETS/);
    const { api } = readBanner(without);
    expect((await api.get('/v1/me')).status).toBe(200);
    const order = await placeOrder(api, { package_id: 'pkg_fr_1gb_7d' });
    expect((await orderEnded(api, order['id'] as string))['status']).toBe('issued');
    await stop(without);
    expect(without.complaints).toEqual([]);
    const child = await start(place);
    const printed = (): boolean => child.stdout.includes(`"order_id":"${order['id'] as string}"`);
    await eventually('the held webhook is printed', printed);
    await stop(child);
  });

  it('can be interrupted at any moment of its first start: nothing is left behind, and the next start succeeds', async () => {
    const place = await newPlace();
    const listens = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${place.adminPort}/livez`).then(
        () => true,
        () => false,
      );
    const moments = [
      () => sleep(400),
      () => sleep(2_000),
      // At this point it prepares the demo.
      () => eventually('the admin API listens', listens),
    ];
    for (const moment of moments) {
      const child = place.launch();
      await moment();
      child.signal('SIGINT');
      await child.exited();
      expect(child.stderr).not.toMatch(/more than once/);
      await eventually('no PostgreSQL is left', async () => (await place.postgresPids()).length === 0);
    }
    const child = await start(place);
    expect((await readBanner(child).api.get('/v1/orders')).status).toBe(200);
    child.signal('SIGTERM');
    expect(await child.exited()).toBe(0);
    expect(await place.postgresPids()).toEqual([]);
  });
});
