import { statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import type { NodeChild } from '../harness/child-process.js';
import { type Banner, EmbeddedPlace, paste, readBanner } from '../harness/embedded-start.js';
import { exchange } from '../harness/portal.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

/** 5 s are promised on an idle machine; this one may run other tests meanwhile. */
/** Of the quickest of several: the machine may run other tests meanwhile. */
const STOP_MS = 15_000;
const stopTimes: number[] = [];

let place: EmbeddedPlace;
let running: NodeChild;
/** Of each start, oldest first. */
const banners: Banner[] = [];
let firstOrderId: string;

beforeAll(async () => {
  place = await EmbeddedPlace.make();
});

afterAll(() => place.remove());

/** Starts on the same folder, reads the banner and answers how long it took. */
async function start(): Promise<number> {
  const startedAt = performance.now();
  running = place.launch();
  await running.ready();
  banners.push(readBanner(running));
  return performance.now() - startedAt;
}

/** Ctrl-C. */
async function interrupt(): Promise<void> {
  const interruptedAt = performance.now();
  running.signal('SIGINT');
  expect(await running.exited()).toBe(0);
  stopTimes.push(Math.round(performance.now() - interruptedAt));
}

const newest = (): Banner => banners.at(-1)!;

async function statusOf({ api }: Banner): Promise<number> {
  return (await api.get('/v1/me')).status;
}

describe('npm start on a machine with nothing', () => {
  it('comes up, and says where things are and what to type', async () => {
    console.log(`first start: ${Math.round(await start())} ms`);
    expect(running.stdout).toContain(place.dataDir);
    expect(newest().curlLines).toHaveLength(6);
    const lines = running.stdout.slice(running.stdout.indexOf('── Partner eSIM')).split('\n');
    // Into a pipe the log goes too, when its buffer is full.
    const banner = lines.filter((line) => !line.startsWith('{'));
    // One screen of 80 columns and 24 rows, the last of which has the cursor, where the data is in its usual folder.
    const usual = banner.map((line) => line.replace(place.dataDir, '.data'));
    expect(usual.filter((line) => line.length > 80)).toEqual([]);
    expect(banner.length).toBeLessThanOrEqual(24);
    expect(banner.findIndex((line) => line.includes('#code='))).toBe(2);
    expect(running.stdout).toContain('SIMULATED wholesaler');
    expect(running.stdout.trimEnd().split('\n')).toContain('ready');
    for (const secret of ['secrets.env', 'demo-webhook.json']) {
      expect(statSync(path.join(place.dataDir, secret)).mode & 0o777, secret).toBe(0o600);
    }
    expect((await fetch(`http://127.0.0.1:${place.adminPort}/readyz`)).status).toBe(200);
  });

  it('prints a link into the portal first, which opens it once', async () => {
    const [portalUrl, code] = newest().portalLink.split('/#code=');
    const opened = await exchange(portalUrl!, code!);
    expect(opened.body.data).toMatchObject({ partner: { name: 'Demo Travel' }, modes: ['sandbox', 'live'] });
    expect((await exchange(portalUrl!, code!)).status).toBe(401);
    const another = paste(newest().curlLines[5]!);
    expect(another).toMatchObject({
      status: 201,
      body: { data: { url: expect.stringContaining('#code=') } },
    });
  });

  it('prints three lines for Sandbox that work when they are pasted', async () => {
    const { api, curlLines } = newest();
    const [browse, order, read] = curlLines;
    expect(paste(browse!)).toMatchObject({ status: 200, body: { data: [{ kind: 'base' }, {}, {}] } });
    const ordered = paste(order!);
    expect(ordered).toMatchObject({ status: 202, body: { data: { status: 'pending' } } });
    firstOrderId = (ordered.body as { data: { id: string } }).data.id;
    const issued = await orderEnded(api, firstOrderId);
    expect(paste(read!)).toMatchObject({
      status: 200,
      body: { data: [{ id: issued['esims'][0].esim_id }] },
    });
  });

  it('prints two lines for Live that work: an order, and the statement of it', async () => {
    const [order, statement] = newest().curlLines.slice(3);
    const ordered = paste(order!);
    expect(ordered).toMatchObject({ status: 202, body: { data: { mode: 'live', status: 'pending' } } });
    type Entry = { type: string; order_id: string | null };
    const entries = (): Entry[] => (paste(statement!).body as { data: Entry[] }).data;
    const orderId = (ordered.body as { data: { id: string } }).data.id;
    await eventually('the order is charged', () => entries().some((entry) => entry.order_id === orderId));
    expect(entries().map(({ type }) => type)).toEqual(['charge', 'deposit']);
  });

  it('receives and verifies its own webhook, and says so', async () => {
    await eventually('the webhook is printed', () => running.stdout.includes(`"order_id":"${firstOrderId}"`));
    expect(running.stdout).toMatch(/^webhook {2}order\.issued {2}signature ok/m);
    expect(running.stdout).not.toContain('REFUSED');
  });

  it('stops on Ctrl-C with exit code 0, and leaves no PostgreSQL behind', async () => {
    await interrupt();
    expect(await place.postgresPids()).toEqual([]);
    expect(place.companions()).toEqual([]);
    expect(running.complaints).toEqual([]);
  });

  it('comes up again with its data, and takes the previous key and the new one', async () => {
    // 5 s are promised on an idle machine; this one may run other tests meanwhile.
    console.log(`second start: ${Math.round(await start())} ms`);
    expect(newest().key).not.toBe(banners[0]!.key);
    expect(await Promise.all(banners.map(statusOf))).toEqual([200, 200]);
    expect((await newest().api.get(`/v1/orders/${firstOrderId}`)).body.data.status).toBe('issued');
    await interrupt();
  });

  it('keeps the two newest keys: a third start ends the first one', async () => {
    await start();
    expect(await Promise.all(banners.map(statusOf))).toEqual([401, 200, 200]);
  });

  it('survives SIGKILL of everything: data is there, and an order accepted just before is issued once', async () => {
    const { id } = await placeOrder(newest().api, { package_id: 'pkg_fr_1gb_7d', quantity: 2 });
    await place.killEverything();
    console.log(`start after SIGKILL: ${Math.round(await start())} ms`);
    expect((await newest().api.get(`/v1/orders/${firstOrderId}`)).body.data.status).toBe('issued');
    // D1: a dead worker's work waits for its lease.
    await eventually('one simulated wholesaler is left', () => place.companions().length === 1);
    const order = await orderEnded(newest().api, id as string, 30_000);
    expect(order).toMatchObject({ status: 'issued', quantity_issued: 2 });
    expect(order['esims']).toHaveLength(2);
    const events = (await newest().api.get('/v1/events?type=order.issued')).body.data as {
      data: { order_id: string };
    }[];
    expect(events.filter((event) => event.data.order_id === id)).toHaveLength(1);
  });

  it('survives SIGKILL of Node.js alone: the orphaned PostgreSQL is taken over or replaced', async () => {
    await running.kill();
    await start();
    expect((await newest().api.get(`/v1/orders/${firstOrderId}`)).body.data.status).toBe('issued');
    await interrupt();
    await eventually('no PostgreSQL is left', async () => (await place.postgresPids()).length === 0);
    console.log(`stops: ${stopTimes.join(', ')} ms`);
    expect(Math.min(...stopTimes)).toBeLessThan(STOP_MS);
  });
});
