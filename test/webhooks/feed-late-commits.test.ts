import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EventsRepository } from '../../src/events/events.repository.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { expectWholeFeed, type FeedParts, Poller } from './feed-late-commits-poller.js';
import { writeOutOfOrder } from './feed-late-commits-writers.js';
import { type EventFields, recordEvents, registerEndpoint } from './support.js';

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;

beforeAll(async () => {
  service = await startTestService();
});
beforeEach(async () => {
  partner = await service.createPartner();
  receiver = await startReceiver();
  await registerEndpoint(service, partner.id, { url: receiver.url });
});
afterEach(() => receiver.close());
afterAll(() => service.stop());

const parts = (): FeedParts => ({
  database: service.database,
  partnerId: partner.id,
  api: partner.sandbox,
  receiver,
});

/** Runs `work` while a transaction that recorded two events before it is open. */
async function whileTwoAreUncommitted(
  work: () => Promise<void>,
  fields: Partial<EventFields> = {},
): Promise<void> {
  let commit = (): void => undefined;
  const gate = new Promise<void>((resolve) => (commit = resolve));
  const event = { ...fields, partnerId: partner.id };
  const events = [event, event];
  const recorded = Promise.withResolvers<void>();
  const writing = recordEvents(service, events, () => {
    recorded.resolve();
    return gate;
  });
  await recorded.promise;
  // Ids have no order within a millisecond, and the clock of a virtual machine may be set back.
  const recordedAt = Date.now();
  await eventually('a later millisecond', () => Date.now() > recordedAt);
  await work();
  commit();
  await writing;
}

describe('a poller of the feed', () => {
  it('sees an event that was recorded first and committed last, after those that overtook it', async () => {
    const poller = new Poller(partner.sandbox);
    await whileTwoAreUncommitted(async () => {
      for (let i = 0; i < 10; i++) await recordEvents(service, [{ partnerId: partner.id }]);
      await poller.catchUp();
      expect(poller.seen).toHaveLength(10);
    });
    await poller.catchUp();
    expect(poller.seen).toHaveLength(12);
    // Ids are in the order of recording: the late ones are the smallest and come last.
    expect(poller.ids.toSorted().slice(0, 2)).toEqual(poller.ids.slice(10));
    await expectWholeFeed(poller, parts());
  });

  it('that keeps the id of its last event instead of a cursor loses nothing to a late commit either', async () => {
    let last = '';
    await whileTwoAreUncommitted(async () => {
      await recordEvents(service, [{ partnerId: partner.id }]);
      const page = await eventually('the first event', async () => {
        const { body } = await partner.sandbox.get('/v1/events');
        return body.data.length === 1 ? body : null;
      });
      last = page.data[0].id as string;
    });
    const { body } = await partner.sandbox.get(`/v1/events?after=${last}`);
    const late = body.data.map((event: { id: string }) => event.id) as string[];
    expect(late).toHaveLength(2);
    expect(late.every((id) => id < last)).toBe(true);
  });

  it('of one type goes on behind what others have of other types, and never behind a late commit', async () => {
    const type = 'esim.expired';
    let after = '';
    const poll = async (): Promise<number> => {
      const { body } = await partner.sandbox.get(`/v1/events?type=${type}${after && `&after=${after}`}`);
      const moved = after !== body.next_cursor;
      after = body.next_cursor as string;
      expect(body.has_more).toBe(false);
      return moved ? (body.data.length as number) : -1;
    };
    expect(await poll()).toBe(0);
    await whileTwoAreUncommitted(
      async () => {
        await recordEvents(service, [{ partnerId: partner.id }]);
        await eventually('the cursor is behind the other', async () => (await poll()) === 0);
        // Nothing happened: the cursor stands.
        expect(await poll()).toBe(-1);
      },
      { type },
    );
    expect(await poll()).toBe(2);
    await recordEvents(service, [{ partnerId: partner.id }]);
    expect(await poll()).toBe(0);
  });

  it('misses and repeats nothing of many slow transactions that commit in any order', async () => {
    const poller = new Poller(partner.sandbox);
    let writing: Promise<void> | null = null;
    const twoAreOvertaken = whileTwoAreUncommitted(async () => {
      writing = writeOutOfOrder(service, partner.id);
      await eventually('others are read', () => poller.seen.length > 0);
    });
    await poller.readDuring(twoAreOvertaken.then(() => writing));
    expect(poller.ids, 'commits were out of order').not.toEqual(poller.ids.toSorted());
    expect(poller.pages).toBeGreaterThan(20);
    await expectWholeFeed(poller, parts());
  });
});

it('the worker does not wait for a reader that gives positions and is held up: the next sweep gives the rest', async () => {
  const events = service.process.api!.nest.get(EventsRepository, { strict: false });
  const window = { from: new Date(Date.now() - 3_600_000), to: new Date(Date.now() + 3_600_000) };
  const holdUp = await service.database.pool.connect();
  // Whoever gives positions meets this and waits, with the lock that only one has.
  await holdUp.query('BEGIN; LOCK TABLE event_feed_days IN EXCLUSIVE MODE');
  await recordEvents(service, [{ partnerId: partner.id }]);
  const reading = partner.sandbox.get('/v1/events');
  await eventually('somebody is held up', async () => {
    const { rows } = await service.database.pool.query(
      `SELECT FROM pg_locks WHERE NOT granted AND relation = 'event_feed_days'::regclass`,
    );
    return rows.length > 0;
  });
  expect(await events.assignPositionsUnlessBusy(window)).toBe(0);
  await holdUp.query('COMMIT');
  holdUp.release();
  expect((await reading).body.data).toHaveLength(1);
});
