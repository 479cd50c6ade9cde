import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NodeChild } from '../harness/child-process.js';
import { EmbeddedPlace, readBanner } from '../harness/embedded-start.js';
import { eventually, HttpClient, PATIENCE_MS } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

const OFF = { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' };
const token = randomBytes(24).toString('hex');

let place: EmbeddedPlace;

beforeEach(async () => {
  place = await EmbeddedPlace.make();
});

afterEach(() => place.remove());

async function start(env: Record<string, string> = {}): Promise<NodeChild> {
  const child = place.launch(env);
  await child.ready();
  return child;
}

async function stop(child: NodeChild): Promise<void> {
  child.signal('SIGINT');
  expect(await child.exited()).toBe(0);
}

/** Asks until `/readyz` answers 200, as an orchestrator does, only faster. */
async function untilReady(): Promise<void> {
  const ask = (): Promise<number> =>
    fetch(`http://127.0.0.1:${place.adminPort}/readyz`).then(
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
  it('is ready when it can be used: the demo partner is there, and the live catalogue is synchronised', async () => {
    const child = place.launch({ ADMIN_TOKENS: `portal:${token}` });
    await untilReady();
    const admin = new HttpClient(`http://127.0.0.1:${place.adminPort}`, token);
    const partners = await admin.get('/internal/v1/partners');
    expect(partners.body.data, partners.text).toMatchObject([{ name: 'Demo Travel' }]);
    const id = partners.body.data[0].id as string;
    const { body } = await admin.post(`/internal/v1/partners/${id}/api-keys`, { mode: 'live' });
    const live = new HttpClient(`http://127.0.0.1:${place.port}`, body.data.key as string);
    expect((await live.get('/v1/catalog?kind=base&limit=1')).body.data).toHaveLength(1);
    await child.ready();
    await stop(child);
  });

  it('starts without the demo receiver where private targets are refused, and says so; the next start with it gets its webhooks', async () => {
    await stop(await start());
    const without = await start(OFF);
    expect(without.stdout).toMatch(/webhooks to .*demo receiver is off.*WEBHOOK_ALLOW_PRIVATE_TARGETS/);
    const { api } = readBanner(without);
    expect((await api.get('/v1/me')).status).toBe(200);
    const order = await placeOrder(api, { package_id: 'pkg_fr_1gb_7d' });
    expect((await orderEnded(api, order['id'] as string))['status']).toBe('issued');
    await stop(without);
    expect(without.complaints).toEqual([]);
    const child = await start();
    const printed = (): boolean => child.stdout.includes(`"order_id":"${order['id'] as string}"`);
    await eventually('the held webhook is printed', printed);
    await stop(child);
  });

  it('can be interrupted while it prepares the demo: one clean stop, no complaint', async () => {
    const child = place.launch();
    const listens = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${place.adminPort}/livez`).then(
        () => true,
        () => false,
      );
    await eventually('the admin API listens', listens);
    child.signal('SIGINT');
    await child.exited();
    expect(child.stderr).not.toMatch(/more than once/);
    await eventually('no PostgreSQL is left', async () => (await place.postgresPids()).length === 0);
  });
});
