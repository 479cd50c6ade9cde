import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { timeOfId } from '../../src/common/ids.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { FAST, getDelivery, listDeliveries, recordEvents, registerEndpoint } from './support.js';

const DAY_MS = 86_400_000;

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({ env: FAST });
  receiver = await startReceiver();
  partner = await service.createPartner('Other times');
});
afterEach(() => vi.useRealTimers());
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

it.each([10, -40])(
  'a process whose clock is %i days wrong records events and delivers them',
  async (days) => {
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    // Only the time of day: timers and due times go on.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * DAY_MS });
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id, type: 'esim.expired' }]);
    vi.useRealTimers();
    const delivered = await eventually('both are delivered', async () => {
      const found = await listDeliveries(service, endpoint, '&status=delivered');
      return found.length === 2 && found;
    });
    for (const { id, event_id: eventId } of delivered) {
      expect(Math.abs(timeOfId(eventId!).getTime() - Date.now())).toBeLessThan(DAY_MS);
      // By its id, as a person who resends it does.
      expect(await getDelivery(service, id)).toMatchObject({ status: 'delivered' });
    }
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * DAY_MS });
    const resent = await service.admin.post(`/internal/v1/deliveries/${delivered[0]!.id}/resend`);
    vi.useRealTimers();
    expect(resent.status).toBe(202);
    const { id } = resent.body.data as { id: string };
    await eventually('it is delivered', async () => (await getDelivery(service, id)).status === 'delivered');
  },
);
