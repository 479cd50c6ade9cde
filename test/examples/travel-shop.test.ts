import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NodeChild } from '../harness/child-process.js';
import { freePort } from '../../chaos/free-port.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';

const SHOPS = ['travel-shop', 'travel-shop-fetch'];

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

describe.each(SHOPS)('the example %s', (name) => {
  let partner: TestPartner;
  let data: string;
  let port: number;
  let secret: string;
  let endpointId: string;
  const started: NodeChild[] = [];

  beforeEach(async () => {
    partner = await service.createPartner();
    data = mkdtempSync(path.join(tmpdir(), 'esim-shop-'));
    port = await freePort();
    const endpoint = await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
      mode: 'sandbox',
      url: `http://127.0.0.1:${port}/webhooks`,
    });
    ({ secret, id: endpointId } = endpoint.body.data as { secret: string; id: string });
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((child) => child.kill()));
    rmSync(data, { recursive: true, force: true });
  });

  async function open(baseUrl = service.process.api?.url ?? ''): Promise<NodeChild> {
    const shop = NodeChild.launch({
      args: ['--no-warnings', `examples/${name}/shop.ts`],
      env: {
        ESIM_BASE_URL: baseUrl,
        ESIM_API_KEY: partner.sandboxKey,
        ESIM_WEBHOOK_SECRET: secret,
        PORT: String(port),
        DATA_DIR: data,
      },
    });
    started.push(shop);
    await shop.ready();
    return shop;
  }

  async function buy(packageId: string): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${port}/buy`, {
      method: 'POST',
      body: JSON.stringify({ email: 'traveler@example.com', package_id: packageId }),
    });
    expect(answer.status).toBe(202);
    return ((await answer.json()) as { booking: string }).booking;
  }

  async function sell(isSold: boolean): Promise<void> {
    const { pool } = service.database;
    await pool.query(`UPDATE packages SET available = $1 WHERE mode = 'sandbox' AND id = 'pkg_fr_1gb_7d'`, [
      isSold,
    ]);
    await pool.query('UPDATE catalog_versions SET version = version + 1');
  }

  function mailOf(booking: string): Promise<string> {
    const file = path.join(data, 'mails', `${booking}.txt`);
    return eventually(
      `the mail of ${booking}`,
      () => existsSync(file) && (readFileSync(file, 'utf8') || null),
    );
  }

  async function ordersOf(booking: string): Promise<{ id: string; esims: { esim_id: string }[] }[]> {
    return (await partner.sandbox.get(`/v1/orders?reference=${booking}`)).body.data;
  }

  it('sells an eSIM, and mails the install data', async () => {
    await open();
    const booking = await buy('pkg_fr_1gb_7d');
    const text = await mailOf(booking);
    const [order] = await ordersOf(booking);
    const esim = (await partner.sandbox.get(`/v1/esims/${order!.esims[0]!.esim_id}`)).body.data;
    expect(text).toContain('To: traveler@example.com');
    expect(text).toContain(esim.install.ios_url);
    expect(text).toContain(esim.install.android_url);
  });

  it('reports a failed and a refused order', async () => {
    await open();
    expect(await mailOf(await buy('pkg_test_out_of_stock'))).toContain('package_unavailable');
    expect(await mailOf(await buy('pkg_that_is_not_there'))).toContain('not_found');
  });

  it('places an accepted booking once, even if it was killed before it reached the service', async () => {
    const first = await open('http://127.0.0.1:1');
    const booking = await buy('pkg_fr_1gb_7d');
    await first.kill();
    const second = await open();
    await mailOf(booking);
    await second.kill();
    await open();
    expect(await ordersOf(booking)).toHaveLength(1);
  });

  it('does not report a booking as refused if its order exists, even if its key has expired and its package is gone', async () => {
    const first = await open('http://127.0.0.1:1');
    const booking = await buy('pkg_fr_1gb_7d');
    await first.kill();
    // Repeats a call that the shop made more than 24 hours ago.
    const body = { package_id: 'pkg_fr_1gb_7d', reference: booking };
    const bought = await partner.sandbox.post('/v1/orders', body);
    expect(bought.status).toBe(202);
    await service.database.pool.query('DELETE FROM idempotency_keys');
    await sell(false);
    await open();
    // Bookings are processed in order, so this one comes after it.
    expect(await mailOf(await buy('pkg_that_is_not_there'))).toContain('not_found');
    await sell(true);
    const mail = path.join(data, 'mails', `${booking}.txt`);
    expect(existsSync(mail) ? readFileSync(mail, 'utf8') : '').not.toContain('could not be ordered');
    expect((await ordersOf(booking)).map(({ id }) => id)).toEqual([bought.body.data.id]);
  });

  it('handles a webhook once, and refuses a forged one', async () => {
    const shop = await open();
    const booking = await buy('pkg_fr_1gb_7d');
    await mailOf(booking);
    const deliveries = `/internal/v1/partners/${partner.id}/webhook-endpoints/${endpointId}/deliveries`;
    const [delivery] = (await service.admin.get(deliveries)).body.data as { id: string }[];
    await service.admin.post(`/internal/v1/deliveries/${delivery!.id}/resend`);
    await eventually('both deliveries are delivered', async () => {
      const { data: all } = (await service.admin.get(deliveries)).body as { data: { status: string }[] };
      return all.length === 2 && all.every(({ status }) => status === 'delivered');
    });
    // A second order shows that the first event was not handled again in the meantime.
    await mailOf(await buy('pkg_fr_1gb_7d'));
    expect(shop.stdout.match(new RegExp(`mail for ${booking}`, 'g'))).toHaveLength(1);
    expect(readdirSync(path.join(data, 'mails'))).toHaveLength(2);
    const forged = await fetch(`http://127.0.0.1:${port}/webhooks`, {
      method: 'POST',
      headers: { 'x-service-signature': `t=${Math.floor(Date.now() / 1_000)},v1=${'0'.repeat(64)}` },
      body: '{"id":"evt_1"}',
    });
    expect(forged.status).toBe(401);
  });
});
