import { Resolver } from 'node:dns/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { startTestService, type TestService } from '../harness/index.js';
import { startCanary, watchDials } from './sending/canary.js';
import { NameServer } from './sending/name-server.js';
import { HOSTILE_URLS } from './ssrf-targets.js';
import { deliveryThat, registerEndpoint } from './support.js';

let service: TestService;
let partnerId: string;

beforeAll(async () => {
  service = await startTestService({ env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' } });
  ({ id: partnerId } = await service.createPartner());
});
afterEach(() => void vi.restoreAllMocks());
afterAll(() => service.stop());

/** Makes resolvers of this process query `address`, because the service uses the operating system's name servers. */
function askAt(address: string): void {
  const resolve4 = Resolver.prototype.resolve4 as (hostname: string) => Promise<string[]>;
  const moved = new WeakSet<Resolver>();
  vi.spyOn(Resolver.prototype, 'resolve4').mockImplementation(function (this: Resolver, hostname: string) {
    if (!moved.has(this)) this.setServers([address]);
    moved.add(this);
    return resolve4.call(this, hostname);
  });
}

it('refuses a hostile URL for a new and for a changed endpoint, without repeating it', async () => {
  const collection = `/internal/v1/partners/${partnerId}/webhook-endpoints`;
  const good = await registerEndpoint(service, partnerId, { url: 'https://hooks.partner.test/in' });
  for (const url of HOSTILE_URLS.map((text) => text.replaceAll('PORT', '8443'))) {
    const created = await service.admin.post(collection, { url, mode: 'sandbox' });
    const moved = await service.admin.call('PATCH', good.path, { body: { url } });
    for (const answer of [created, moved]) {
      expect([url, answer.status]).toEqual([url, 400]);
      expect(answer.text).toContain('"/url"');
      expect(answer.text).not.toContain(url);
    }
  }
});

it('refuses a test event to a name with a private address, in a message without the address', async () => {
  const canary = await startCanary();
  const nameServer = await NameServer.start({ 'inside.test': { a: ['127.0.0.1'], aaaa: ['::1'] } });
  askAt(nameServer.address);
  const endpoint = await registerEndpoint(service, partnerId, {
    url: `https://inside.test:${canary.port}/hook`,
  });
  const dials = watchDials();
  expect((await service.admin.post(`${endpoint.path}/test`)).status).toBe(202);
  const delivery = await deliveryThat(service, endpoint, 'has failed', ({ status }) => status === 'failed');
  expect(delivery).toMatchObject({
    kind: 'test',
    attempts: [{ error: 'target_refused', status_code: null }],
  });
  expect(JSON.stringify(delivery)).not.toMatch(/127\.0\.0\.1|::1/);
  expect(nameServer.questions.toSorted()).toEqual(['A inside.test', 'AAAA inside.test']);
  expect(dials.filter((dial) => dial.endsWith(` ${canary.port}`))).toEqual([]);
  expect(canary.count()).toBe(0);
});

it('refuses an attempt to an endpoint from a time when private addresses were allowed', async () => {
  const canary = await startCanary();
  const endpoint = await registerEndpoint(service, partnerId, { url: 'https://hooks.partner.test/old' });
  await service.database.pool.query('UPDATE webhook_endpoints SET url = $2 WHERE id = $1', [
    endpoint.id,
    `https://127.0.0.1:${canary.port}/hook`,
  ]);
  expect((await service.admin.post(`${endpoint.path}/test`)).status).toBe(202);
  const delivery = await deliveryThat(service, endpoint, 'has failed', ({ status }) => status === 'failed');
  expect(delivery.attempts).toMatchObject([{ error: 'target_refused' }]);
  expect(canary.count()).toBe(0);
});
