import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../harness/index.js';
import { freePort } from '../harness/free-port.js';
import { placeOrder } from '../harness/order-steps.js';
import { askRedis, redisMissing } from '../harness/redis.js';
import { SentinelSetup } from '../harness/redis-sentinel.js';
import { Shop } from './shop.js';

const missing = redisMissing();
if (missing) console.warn(`Redis behind sentinels is not tested: ${missing}`);

const TEST_MS = 480_000;
const FAILOVER_MS = 120_000;

describe.skipIf(missing !== null)('with Redis behind sentinels (D1)', () => {
  const onStderr = vi.spyOn(console, 'error').mockReturnValue();
  let setup: SentinelSetup;
  let shop: Shop;

  beforeAll(async () => {
    setup = await SentinelSetup.start({ replicas: 2 });
    // A sentinel that is away is no reason to stop.
    const url = setup.url({ hosts: [`127.0.0.1:${await freePort()}`] });
    shop = await Shop.open(url, async (question) => [
      await askRedis(setup.optionsOf(await setup.primaryPort()), question),
    ]);
  });

  afterAll(async () => {
    await shop?.close();
    await setup?.stop();
    onStderr.mockRestore();
  });

  it('takes orders, retries deliveries and limits', { timeout: TEST_MS }, async () => {
    await shop.makeRound();
    const jobs = await askRedis(setup.optionsOf(await setup.primaryPort()), (client) =>
      client.keys('bull:*'),
    );
    expect(jobs.length, 'under the same names as on one server').toBeGreaterThan(0);
  });

  it.each([
    ['dies', 'SIGKILL'],
    ['freezes, and keeps its connections', 'SIGSTOP'],
  ] as const)(
    'loses no order when the primary %s, and goes on with the next primary by itself',
    { timeout: TEST_MS },
    async (_, signal) => {
      const sweeper = await shop.start('worker', { SWEEP_INTERVAL_MS: '250' });
      await shop.listening(2);
      const lost = await setup.primaryPort();
      if (signal === 'SIGKILL') await setup.server(lost).kill();
      else setup.server(lost).freeze();
      const { id } = await placeOrder(await shop.newPartner(), { package_id: 'pkg_fr_1gb_7d' });
      await shop.deliveredTwice(id as string);
      await eventually(
        'a replica is the primary',
        async () => (await setup.primaryPort()) !== lost,
        FAILOVER_MS,
      );
      await shop.listening(2);
      await sweeper.stop();
      await shop.makeRound();
    },
  );

  it('says what is wrong with a password, and not the password', { timeout: TEST_MS }, async () => {
    const wrong = `wrong@${setup.passwords[0]}`;
    const stranger = await Shop.open(setup.url({ password: wrong }), () => Promise.resolve([]));
    await eventually('the refusal is logged', () =>
      stranger.logLines.some((line) => line.includes('WRONGPASS')),
    );
    await stranger.close();
    expect(onStderr, 'nobody but the log says anything').not.toHaveBeenCalled();
    const said = [...shop.logLines, ...stranger.logLines].join('\n');
    for (const password of [wrong, ...setup.passwords]) {
      expect(said).not.toContain(password);
      expect(said).not.toContain(encodeURIComponent(password));
    }
  });
});
