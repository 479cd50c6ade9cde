import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { closeReceivers, receiverThatAnswers } from './answering-receiver.js';
import { EndpointClock } from './schedule-clock.js';
import {
  endpointState,
  FAST,
  getDelivery,
  listDeliveries,
  recordEvent,
  recordEvents,
  registerEndpoint,
} from './support.js';

const BLOCK_MS = 60_000;

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  // Longer than a busy machine takes to write down four failures that belong to one block, or six of one delivery while
  // another is under way; the clock of the endpoint is moved to its end.
  const env = {
    ...FAST,
    WEBHOOK_BLOCK_MS: String(BLOCK_MS),
    WEBHOOK_TIMEOUT_MS: '60000',
    SWEEP_INTERVAL_MS: '250',
  };
  service = await startTestService({ env });
});
beforeEach(async () => {
  partner = await service.createPartner();
});
afterEach(closeReceivers);
afterAll(() => service.stop());

describe('blocking', () => {
  it('blocks once when the sixth attempt fails, sends nothing during the block, and goes on afterwards', async () => {
    const receiver = await receiverThatAnswers(500);
    const attempts = new Map<unknown, number>();
    const last: ServerResponse[] = [];
    receiver.answer = (_nth, { headers }, response) => {
      const attempt = (attempts.get(headers['x-service-delivery']) ?? 0) + 1;
      attempts.set(headers['x-service-delivery'], attempt);
      if (attempt < 6) response.writeHead(500).end();
      else if (last.push(response) === 4) {
        last.forEach((sixth, index) => void setTimeout(() => sixth.writeHead(500).end(), index * 60));
      }
    };
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    // Four deliveries are in their last attempt together: they are one block.
    await recordEvents(
      service,
      [1, 2, 3, 4].map(() => ({ partnerId: partner.id })),
    );
    const blocked = await eventually('blocked', async () => {
      const state = await endpointState(service, endpoint);
      return state.status === 'blocked' ? state : null;
    });
    expect(blocked).toMatchObject({ consecutive_blocks: 1, disabled_reason: null });
    await eventually('all given up', async () =>
      (await listDeliveries(service, endpoint, '&status=failed')).length === 4 ? true : null,
    );
    expect((await endpointState(service, endpoint)).consecutive_blocks).toBe(1);
    for (const { id } of await listDeliveries(service, endpoint)) {
      expect(await getDelivery(service, id)).toMatchObject({
        status: 'failed',
        attempt_count: 6,
        next_attempt_at: null,
      });
    }
    expect(receiver.received).toHaveLength(24);

    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    await recordEvent(service, { partnerId: partner.id });
    const moved = await new EndpointClock(service.database, endpoint.id).advanceTo(
      blocked.blocked_until,
      2_500,
    );
    const blockEndsAt = Date.parse(String(blocked.blocked_until)) - moved;
    await eventually('the delivery after the block', () => receiver.received.length === 25);
    expect(Date.now()).toBeGreaterThanOrEqual(blockEndsAt - 20);
    const after = await eventually('reset', async () => {
      const state = await endpointState(service, endpoint);
      return state.consecutive_blocks === 0 ? state : null;
    });
    expect(after).toMatchObject({ status: 'enabled', blocked_until: null });
    const delivered = await listDeliveries(service, endpoint, '&status=delivered');
    expect(delivered[0]).toMatchObject({ attempt_count: 1 });
  });

  it('lets what is in flight end: a 2xx sets the count to 0 and does not shorten the block', async () => {
    const receiver = await receiverThatAnswers(500);
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    let slowOne: unknown;
    let succeed = (): void => undefined;
    receiver.answer = (_nth, { headers }, response) => {
      const id = headers['x-service-delivery'];
      slowOne ??= id;
      if (id !== slowOne) response.writeHead(500).end();
      else succeed = () => void response.writeHead(200).end();
    };
    // The row keeps the end of a block that is over: it may be, before a busy machine comes to look.
    const row = async () => {
      const { rows } = await service.database.pool.query<{ blocks: number; until: Date | null }>(
        'SELECT consecutive_blocks AS blocks, blocked_until AS until FROM webhook_endpoints WHERE id = $1',
        [endpoint.id],
      );
      return rows[0]!;
    };
    const before = await eventually('a block', async () => {
      const found = await row();
      return found.blocks === 1 ? found : null;
    });
    succeed();
    const after = await eventually('reset', async () => {
      const found = await row();
      return found.blocks === 0 ? found : null;
    });
    expect(before.until).not.toBeNull();
    expect(after.until).toEqual(before.until);
    expect((await listDeliveries(service, endpoint)).map(({ status }) => status).sort()).toEqual([
      'delivered',
      'failed',
    ]);
  });

  it('disables at the fifth block without a 2xx between, with an audit entry, and holds what comes', async () => {
    const receiver = await receiverThatAnswers(503);
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    const clock = new EndpointClock(service.database, endpoint.id);
    for (let block = 1; block <= 5; block++) {
      if (block > 1) await clock.advance(BLOCK_MS);
      await recordEvent(service, { partnerId: partner.id });
      await eventually(`block ${block}`, async () => {
        const state = await endpointState(service, endpoint);
        return state.consecutive_blocks === block;
      });
    }
    expect(await endpointState(service, endpoint)).toMatchObject({
      status: 'disabled',
      disabled_reason: 'consecutive_blocks',
      disabled_at: expect.stringMatching(/Z$/),
      blocked_until: null,
      consecutive_blocks: 5,
    });
    const audit = await service.admin.get(
      `/internal/v1/audit-log?subject_id=${endpoint.id}&action=webhook_endpoint.disabled`,
    );
    expect(audit.body.data).toHaveLength(1);
    expect(audit.body.data[0]).toMatchObject({ actor: 'system', details: { reason: 'consecutive_blocks' } });

    const sent = receiver.received.length;
    await recordEvent(service, { partnerId: partner.id });
    expect(await listDeliveries(service, endpoint, '&status=held')).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(receiver.received).toHaveLength(sent);
    expect(sent).toBe(30);
  });

  it('starts the count again after a 2xx', async () => {
    const receiver = await receiverThatAnswers(500);
    const endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
    const clock = new EndpointClock(service.database, endpoint.id);
    const blockOnce = async (count: number): Promise<void> => {
      receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
      await clock.advance(BLOCK_MS);
      await recordEvent(service, { partnerId: partner.id });
      await eventually(
        'block',
        async () => (await endpointState(service, endpoint)).consecutive_blocks === count,
      );
    };
    await blockOnce(1);
    await blockOnce(2);
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    await clock.advance(BLOCK_MS);
    await recordEvent(service, { partnerId: partner.id });
    await eventually('reset', async () => (await endpointState(service, endpoint)).consecutive_blocks === 0);
    await blockOnce(1);
  });
});
