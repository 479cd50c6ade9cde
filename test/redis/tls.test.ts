import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { openRedis } from '../../src/infra/redis-client.js';
import { eventually, startReceiver, startTestService, testEnvironment } from '../harness/index.js';
import { freePort } from '../../chaos/free-port.js';
import { placeOrder } from '../harness/order-steps.js';
import { answers, askRedis, MEMORY_ONLY, ON_LOOPBACK, redisMissing, RedisProcess } from '../harness/redis.js';
import { SentinelSetup } from '../harness/redis-sentinel.js';
import { listenArguments, makeCertificates, type TestCertificates } from '../harness/redis-tls.js';
import { RoleChild } from '../harness/role-child.js';

const missing = redisMissing();
if (missing) console.warn(`Redis with TLS is not tested: ${missing}`);

const TEST_MS = 240_000;
const RETRY_MS = 2_500;

/**
 * Node.js emits two errors when a certificate is refused while the server reports a hang-up. It happens once in a
 * thousand refusals, so the test emits them itself. An error without a listener would throw.
 */
function tellTwoErrors(client: Redis): void {
  for (const told of ['the certificate is refused', 'the server was hung up on'])
    client.stream.emit('error', new Error(told));
}

describe.skipIf(missing !== null)('with TLS by a private CA (D1)', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'esim-tls-'));
  const defaults = getCACertificates('default');
  let certificates: TestCertificates;

  beforeAll(() => {
    certificates = makeCertificates(path.join(folder, 'both'), 'DNS:localhost,IP:127.0.0.1');
  });

  afterAll(() => {
    setDefaultCACertificates(defaults);
    rmSync(folder, { recursive: true, force: true });
  });

  const open = (url: string): Redis =>
    openRedis(loadConfig(testEnvironment('postgres://user@localhost/db', { REDIS_URL: url })).redis!, 'wait');

  describe('one server', () => {
    let port: number;
    let server: RedisProcess;
    let url: string;

    beforeAll(async () => {
      port = await freePort();
      server = RedisProcess.launch([
        ...listenArguments(port, certificates),
        ...[...ON_LOOPBACK, ...MEMORY_ONLY],
      ]);
      url = `rediss://localhost:${port}`;
      await eventually('Redis answers', () => answers(ownOptions()));
    });

    afterAll(() => server?.kill());

    const ownOptions = () => ({ port, tls: { ca: certificates.ca, servername: 'localhost' } });

    it('is refused by a process that does not know the CA', { timeout: TEST_MS }, async () => {
      const client = open(url.replace('rediss', 'REDISS'));
      let said = '';
      client.on('error', (error: Error) => (said = error.message));
      await eventually('it refuses the certificate', () => said !== '');
      client.disconnect();
      expect(said).toMatch(/certificate/);
    });

    it('may raise two errors on one connection, which are not fatal', { timeout: TEST_MS }, async () => {
      setDefaultCACertificates([...defaults, certificates.ca]);
      const client = open(url);
      try {
        expect(await client.set('before', 'two errors')).toBe('OK');
        tellTwoErrors(client);
        expect(await client.get('before')).toBe('two errors');
      } finally {
        client.disconnect();
        setDefaultCACertificates(defaults);
      }
    });

    it('serves the roles, which get the CA from NODE_EXTRA_CA_CERTS', { timeout: TEST_MS }, async () => {
      const office = await startTestService({ role: 'admin' });
      const receiver = await startReceiver();
      const env = {
        REDIS_URL: url,
        NODE_EXTRA_CA_CERTS: certificates.caFile,
        SWEEP_INTERVAL_MS: '60000',
        WEBHOOK_RETRY_DELAYS_MS: Array(5).fill(RETRY_MS).join(','),
      };
      const api = await RoleChild.start({ role: 'api', database: office.database, env });
      const worker = await RoleChild.start({ role: 'worker', database: office.database, env });
      try {
        const { id, sandboxKey } = await office.createPartner();
        const endpoint = { mode: 'sandbox', url: receiver.url };
        await office.admin.post(`/internal/v1/partners/${id}/webhook-endpoints`, endpoint);
        receiver.answer = (nth, _webhook, response) => void response.writeHead(nth === 0 ? 500 : 200).end();
        await eventually('the worker hears signals', () =>
          askRedis(ownOptions(), async (client) => {
            const [, count] = await client.pubsub('NUMSUB', 'partner_esim_work');
            return Number(count) === 1;
          }),
        );
        await placeOrder(api.partnerApi(sandboxKey), { package_id: 'pkg_fr_1gb_7d' });
        await eventually('the event and its retry', () => receiver.received.length === 2);
        const [first, second] = receiver.received;
        expect(second!.receivedAtMs - first!.receivedAtMs).toBeGreaterThanOrEqual(RETRY_MS - 100);
        await eventually('a bucket, which is kept for a second when it is full', async () => {
          await api.partnerApi(sandboxKey).get('/v1/me');
          const buckets = await askRedis(ownOptions(), (client) => client.keys('rate:*'));
          return buckets.length > 0;
        });
      } finally {
        await Promise.all([api.kill(), worker.kill()]);
        await receiver.close();
        await office.stop();
      }
    });
  });

  it('also works with sentinels and the primary that they name', { timeout: TEST_MS }, async () => {
    setDefaultCACertificates([...defaults, certificates.ca]);
    const setup = await SentinelSetup.start({ replicas: 0, certificates });
    const client = open(setup.url());
    try {
      expect(await client.set('heard', 'over TLS')).toBe('OK');
      tellTwoErrors(client);
    } finally {
      client.disconnect();
      await setup.stop();
      setDefaultCACertificates(defaults);
    }
  });
});
