import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import partnerApi from '../../docs/openapi/partner.json' with { type: 'json' };
import {
  DOCUMENT_EVENT_TYPES,
  EVENT_TYPES,
  EventRecorder,
  type NewEvent,
  OPT_IN_EVENT_TYPES,
} from '../../src/events/index.js';
import { Transactions } from '../../src/infra/database/index.js';
import { eventually, startTestService, type TestService } from '../harness/index.js';
import { closeReceivers, receiverThatAnswers, registerEndpoint } from './support.js';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());
afterEach(closeReceivers);

/** With the level of the documented example of `esim.usage.level`. */
const LEVELS = [90];

/** Records the documented example of each type in one transaction. */
async function recordEach(partnerId: string): Promise<void> {
  const app = service.process.admin!.nest;
  await app.get(Transactions, { strict: false }).run((tx) =>
    app.get(EventRecorder, { strict: false }).record(
      tx,
      EVENT_TYPES.map((type) => {
        const common = { partnerId, mode: 'sandbox', happenedAt: new Date() };
        const { data } = partnerApi.webhooks[type].post.requestBody.content['application/json'].example;
        return { ...common, type, data } as NewEvent;
      }),
    ),
  );
}

describe('event_types of an endpoint', () => {
  it('selects the document\'s seven types if null, the named types, or every type with "*"', async () => {
    const partner = await service.createPartner();
    const some = ['wallet.low', 'order.issued'];
    const wanted = [
      { event_types: undefined, received: DOCUMENT_EVENT_TYPES },
      { event_types: some, received: some },
      { event_types: ['*'], received: EVENT_TYPES },
      { event_types: ['*', 'order.issued'], received: EVENT_TYPES },
      { event_types: [...OPT_IN_EVENT_TYPES], received: OPT_IN_EVENT_TYPES },
    ];
    const receivers = await Promise.all(
      wanted.map(async ({ event_types, received }) => {
        const receiver = await receiverThatAnswers(200);
        const fields = { url: receiver.url, usage_levels: LEVELS, ...(event_types ? { event_types } : {}) };
        const endpoint = await registerEndpoint(service, partner.id, fields);
        return { receiver, endpoint, received };
      }),
    );
    await recordEach(partner.id);
    for (const { receiver, received } of receivers)
      await eventually('all subscribed types', () => receiver.received.length >= received.length);
    const { rows } = await service.database.pool.query<{ endpoint_id: string; types: string[] }>(
      `SELECT endpoint_id, array_agg(event_type) AS types FROM webhook_deliveries
       WHERE partner_id = $1 GROUP BY endpoint_id`,
      [partner.id],
    );
    for (const { endpoint, received } of receivers) {
      const owed = rows.find((row) => row.endpoint_id === endpoint.id)!.types;
      expect(owed.toSorted()).toEqual([...received].toSorted());
    }
  });

  it('leaves every type in the feed', async () => {
    const partner = await service.createPartner();
    await recordEach(partner.id);
    const { data } = (await partner.sandbox.get('/v1/events?limit=100')).body;
    expect(data.map(({ type }: { type: string }) => type)).toEqual(EVENT_TYPES);
    for (const type of OPT_IN_EVENT_TYPES) {
      const found = (await partner.sandbox.get(`/v1/events?type=${type}`)).body.data as object[];
      expect(found).toHaveLength(1);
    }
  });

  it('shows "*" as it was set, and refuses unknown types', async () => {
    const partner = await service.createPartner();
    const path = `/internal/v1/partners/${partner.id}/webhook-endpoints`;
    const create = (event_types: unknown) =>
      service.admin.post(path, { mode: 'sandbox', url: 'https://partner.example/', event_types });
    expect((await create(['*'])).body.data.event_types).toEqual(['*']);
    for (const types of [['**'], ['order.*'], ['*', '*'], '*'])
      expect((await create(types)).body.code, JSON.stringify(types)).toBe('validation_failed');
  });
});
