import { expect, it } from 'vitest';
import { startTestService, startReceiver } from '../harness/index.js';
it('x', async () => {
  const service = await startTestService({ env: { LOG_LEVEL: 'info' } });
  const partner = await service.createPartner();
  const receiver = await startReceiver();
  const r = await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, { mode: 'sandbox', url: receiver.url });
  console.log(r.status, r.text);
  const o = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
  console.log(o.text);
  await new Promise((r) => setTimeout(r, 3000));
  console.log(receiver.received);
  await service.stop();
  await receiver.close();
  expect(1).toBe(1);
}, 60000);
