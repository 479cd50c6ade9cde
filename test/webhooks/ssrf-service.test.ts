import { Resolver } from 'node:dns/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { createTestDatabase, startTestService, type TestService } from '../harness/index.js';
import { startCanary, watchDials } from './sending/canary.js';
import { NameServer } from './sending/name-server.js';
import { afterThisTest } from './sending/sender.js';
import { HOSTILE_URLS } from './ssrf-targets.js';
import { deliveryThat, registerEndpoint } from './support.js';

afterEach(() => void vi.restoreAllMocks());

/** Resolvers of this process ask `address` from now on: the service takes the operating system's name servers. */
function askAt(address: string): void {
  const resolve4 = Resolver.prototype.resolve4 as (hostname: string) => Promise<string[]>;
  const moved = new WeakSet<Resolver>();
  vi.spyOn(Resolver.prototype, 'resolve4').mockImplementation(function (this: Resolver, hostname: string) {
    if (!moved.has(this)) this.setServers([address]);
    moved.add(this);
    return resolve4.call(this, hostname);
  });
}

async function productionService(): Promise<TestService> {
  const service = await startTestService({ env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' } });
  afterThisTest(() => service.stop());
  return service;
}

it('a hostile URL is not registered, nor is an endpoint moved to one', async () => {
  const service = await productionService();
  const { id } = await service.createPartner();
  const collection = `/internal/v1/partners/${id}/webhook-endpoints`;
  const good = await registerEndpoint(service, id, { url: 'https://hooks.partner.test/in' });
  for (const url of HOSTILE_URLS.map((text) => text.replaceAll('PORT', '8443'))) {
    const created = await service.admin.post(collection, { url, mode: 'sandbox' });
    const moved = await service.admin.call('PATCH', good.path, { body: { url } });
    for (const answer of [created, moved]) {
      expect([url, answer.status]).toEqual([url, 400]);
      expect(JSON.stringify(answer.body)).toContain('"/url"');
    }
  }
});

it('a test send is guarded as any other: a name inside is refused, in words that hold no address', async () => {
  const canary = await startCanary();
  const nameServer = await NameServer.start({ 'inside.test': { a: ['127.0.0.1'], aaaa: ['::1'] } });
  askAt(nameServer.address);
  const service = await productionService();
  const { id } = await service.createPartner();
  const endpoint = await registerEndpoint(service, id, { url: `https://inside.test:${canary.port}/hook` });
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

it('an endpoint from a time when addresses were allowed is refused at the attempt', async () => {
  const canary = await startCanary();
  const database = await createTestDatabase();
  afterThisTest(() => database.drop());
  const lenient = await startTestService({ database });
  const { id } = await lenient.createPartner();
  const endpoint = await registerEndpoint(lenient, id, { url: `https://127.0.0.1:${canary.port}/hook` });
  await lenient.stop();
  const service = await startTestService({ database, env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' } });
  afterThisTest(() => service.stop());
  expect((await service.admin.post(`${endpoint.path}/test`)).status).toBe(202);
  const delivery = await deliveryThat(service, endpoint, 'has failed', ({ status }) => status === 'failed');
  expect(delivery.attempts).toMatchObject([{ error: 'target_refused' }]);
  expect(canary.count()).toBe(0);
});
