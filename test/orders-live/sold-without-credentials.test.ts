import { expect, it } from 'vitest';
import { startTestService } from '../harness/index.js';
import { LiveShop, PACKAGE, PRICE } from './live-shop.js';

it('an API process without wholesaler credentials sells what LIVE_PROVIDERS names, and nothing else', async () => {
  const shop = await LiveShop.open();
  const { database } = shop;
  const api = await startTestService({ role: 'api', database, env: { LIVE_PROVIDERS: 'zendit' } });
  try {
    const { id } = await shop.buyer(PRICE);
    const live = api.partnerApi(await shop.office.createKey(id, 'live'));
    const order = async (provider: string): Promise<number> => {
      await database.pool.query('UPDATE package_sources SET provider = $1', [provider]);
      return (await live.post('/v1/orders', { package_id: PACKAGE })).status;
    };
    expect(await order('esim_access')).toBe(503);
    expect(await order('zendit')).toBe(202);
  } finally {
    await api.stop();
    await shop.close();
  }
});
