import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Random } from '../../chaos/random.js';
import { EventsRepository } from '../../src/events/events.repository.js';
import {
  eventually,
  type HttpClient,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { type EventFields, recordEvents, registerEndpoint } from '../webhooks/support.js';

/** Concurrent writers. Each holds one connection of the process while its transaction is open. */
const WRITERS = 8;
const TRANSACTIONS_EACH = 12;
const MAX_TRANSACTION_MS = 150;

const random = new Random(20_261_121);

/** Runs transactions that record events and stay open for a random time, so they commit in any order. */
async function writeOutOfOrder(service: TestService, partnerId: string): Promise<void> {
  const writer = async (): Promise<void> => {
    for (let i = 0; i < TRANSACTIONS_EACH; i++) {
      const events = Array.from({ length: random.between(1, 3) }, () => ({ partnerId }));
      const openMs = random.between(0, MAX_TRANSACTION_MS);
      await recordEvents(service, events, () => sleep(openMs));
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

const PAGE = 7;

/** An event in the feed: its id and its exact bytes. */
interface Seen {
  readonly id: string;
  readonly bytes: string;
}

/** A partner that polls from its last position and never goes back (D39). */
class Poller {
  readonly seen: Seen[] = [];
  pages = 0;
  private cursor = '';

  constructor(
    private readonly api: HttpClient,
    private readonly limit = PAGE,
  ) {}

  get ids(): string[] {
    return this.seen.map(({ id }) => id);
  }

  /** Reads until no more pages remain. */
  async catchUp(): Promise<void> {
    for (let more = true; more;) more = await this.readPage();
  }

  /** Reads until `work` has ended, and once more after it. */
  async readDuring(work: Promise<unknown>): Promise<void> {
    let working = true;
    const ended = work.finally(() => (working = false));
    // Awaited below. An early rejection must not crash the process.
    ended.catch(() => undefined);
    while (working) {
      await this.catchUp();
      await sleep(5);
    }
    await ended;
    await this.catchUp();
  }

  private async readPage(): Promise<boolean> {
    const after = this.cursor === '' ? '' : `&after=${encodeURIComponent(this.cursor)}`;
    const answer = await this.api.get(`/v1/events?limit=${this.limit}${after}`);
    expect(answer.status, answer.text).toBe(200);
    const { data, has_more, next_cursor } = answer.body as Page;
    const bytes = bytesOf(answer.text);
    expect(bytes, answer.text).toHaveLength(data.length);
    this.seen.push(...data.map(({ id }, index) => ({ id, bytes: bytes[index]! })));
    this.cursor = next_cursor;
    this.pages++;
    return has_more;
  }
}

interface Page {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
  readonly next_cursor: string;
}

/** The raw bytes of each item, cut from the response text, because parsing would hide byte differences. */
function bytesOf(text: string): string[] {
  const list = /"data":\[(.*)\],"has_more":/s.exec(text)?.[1] ?? '';
  return list === '' ? [] : list.split(/(?<=\}),(?=\{"id":"evt_)/);
}

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

/** Runs `work` while an earlier transaction with two events is still open. */
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
  // Ids are unordered within a millisecond, and a virtual machine's clock may be set back.
  const recordedAt = Date.now();
  await eventually('a later millisecond', () => Date.now() > recordedAt);
  await work();
  commit();
  await writing;
}

/** Checks that the poller saw every committed event once, in the order of later readers, with the webhooks' bytes. */
async function expectWholeFeed(poller: Poller): Promise<void> {
  const { rows } = await service.database.pool.query<{ id: string }>(
    'SELECT id FROM events WHERE partner_id = $1',
    [partner.id],
  );
  expect(poller.ids.toSorted()).toEqual(rows.map((row) => row.id).sort());
  const later = new Poller(partner.sandbox, 50);
  await later.catchUp();
  expect(later.seen).toEqual(poller.seen);
  const webhooks = (): string[] => [...new Set(receiver.received.map(({ body }) => body))];
  await eventually('every webhook', () => webhooks().length >= rows.length);
  expect(webhooks().sort()).toEqual(poller.seen.map(({ bytes }) => bytes).sort());
}

describe('a poller of the feed', () => {
  it('sees an event that was recorded first and committed last, after the events that overtook it', async () => {
    const poller = new Poller(partner.sandbox);
    await whileTwoAreUncommitted(async () => {
      for (let i = 0; i < 10; i++) await recordEvents(service, [{ partnerId: partner.id }]);
      await poller.catchUp();
      expect(poller.seen).toHaveLength(10);
    });
    await poller.catchUp();
    expect(poller.seen).toHaveLength(12);
    // Ids follow the order of recording, so the late ones are the smallest and come last.
    expect(poller.ids.toSorted().slice(0, 2)).toEqual(poller.ids.slice(10));
    await expectWholeFeed(poller);
  });

  it('misses no late commit even if it uses the id of its last event instead of a cursor', async () => {
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

  it('moves past other types when it filters by one, and never past a late commit', async () => {
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
        // Without new events the cursor does not move.
        expect(await poll()).toBe(-1);
      },
      { type },
    );
    expect(await poll()).toBe(2);
    await recordEvents(service, [{ partnerId: partner.id }]);
    expect(await poll()).toBe(0);
  });

  it('misses and repeats no event when many slow transactions commit in any order', async () => {
    const poller = new Poller(partner.sandbox);
    let writing: Promise<void> | null = null;
    const twoAreOvertaken = whileTwoAreUncommitted(async () => {
      writing = writeOutOfOrder(service, partner.id);
      await eventually('others are read', () => poller.seen.length > 0);
    });
    await poller.readDuring(twoAreOvertaken.then(() => writing));
    expect(poller.ids, 'commits were out of order').not.toEqual(poller.ids.toSorted());
    expect(poller.pages).toBeGreaterThan(10);
    await expectWholeFeed(poller);
  });
});

describe('the worker', () => {
  it('does not wait for a blocked reader that assigns positions, and the next sweep assigns the rest', async () => {
    const events = service.process.api!.nest.get(EventsRepository, { strict: false });
    const window = { from: new Date(Date.now() - 3_600_000), to: new Date(Date.now() + 3_600_000) };
    const holdUp = await service.database.pool.connect();
    // A reader that assigns positions blocks here while it holds the exclusive lock.
    await holdUp.query('BEGIN; LOCK TABLE event_feed_days IN EXCLUSIVE MODE');
    await recordEvents(service, [{ partnerId: partner.id }]);
    const reading = partner.sandbox.get('/v1/events');
    await eventually('somebody is held up', async () => {
      const { rows } = await service.database.pool.query(
        `SELECT FROM pg_locks WHERE NOT granted AND relation = 'event_feed_days'::regclass
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      return rows.length > 0;
    });
    expect(await events.assignPositionsUnlessBusy(window)).toBe(0);
    await holdUp.query('COMMIT');
    holdUp.release();
    expect((await reading).body.data).toHaveLength(1);
  });
});

describe('assigning positions', () => {
  const DEATHS = 2;
  /** Arbitrary lock numbers of the gates below. */
  const GATES = { worker: 4_711, api: 4_712 };
  type Gate = keyof typeof GATES;

  let whole: TestService;
  let office: TestService;
  let api: TestService;
  let worker: RoleChild;

  // Separate roles, because the worker gets killed.
  beforeAll(async () => {
    office = await startTestService({ role: 'admin' });
    const { database } = office;
    const env = { SWEEP_INTERVAL_MS: '50' };
    api = await startTestService({ role: 'api', database, env });
    worker = await RoleChild.start({ role: 'worker', database, env });
    whole = service;
    service = {
      ...office,
      createPartner: async () => {
        const created = await office.createPartner();
        return { ...created, sandbox: api.partnerApi(created.sandboxKey) };
      },
    };
    // A process that assigns positions waits at its gate after it took the numbers and before it commits them. A test
    // may keep the gate shut longer than the service's lock timeout.
    await database.pool.query(`
      CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = '2min' AS $body$
      BEGIN
        PERFORM pg_advisory_xact_lock_shared(CASE current_setting('application_name')
          WHEN 'partner-esim-worker' THEN ${GATES.worker} ELSE ${GATES.api} END);
        RETURN NULL;
      END $body$;
      CREATE TRIGGER wait_at_gate AFTER UPDATE OF position ON events
        FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate();
    `);
  });
  afterAll(async () => {
    service = whole;
    await worker.kill();
    await api.stop();
    await office.stop();
  });

  async function whileGateIsShut(gate: Gate, work: () => Promise<void>): Promise<void> {
    const client: PoolClient = await service.database.pool.connect();
    try {
      await client.query('SELECT pg_advisory_lock($1)', [GATES[gate]]);
      await work();
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [GATES[gate]]);
      client.release();
    }
  }

  /** Waits until a process of this role waits at its gate. */
  async function isCaught(role: Gate): Promise<void> {
    await eventually(`the ${role} is giving positions`, async () => {
      const { rows } = await service.database.pool.query(
        `SELECT 1 FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'partner-esim-' || $1 AND wait_event_type = 'Lock'`,
        [role],
      );
      return rows.length > 0;
    });
  }

  it('leaves no gap and no duplicate when the worker dies midway', async () => {
    const poller = new Poller(partner.sandbox);
    for (let death = 1; death <= DEATHS; death++) {
      await poller.catchUp();
      const before = poller.seen.length;
      let writing = Promise.resolve();
      await whileGateIsShut('worker', async () => {
        writing = writeOutOfOrder(service, partner.id);
        await isCaught('worker');
        await worker.kill();
      });
      await poller.readDuring(writing);
      expect(poller.seen.length).toBeGreaterThan(before);
      await worker.restart();
    }
    await expectWholeFeed(poller);
  });

  it('never changes a position that a reader has seen, even when two readers assign concurrently', async () => {
    const poller = new Poller(partner.sandbox);
    let other = Promise.resolve();
    await whileGateIsShut('api', async () => {
      await whileGateIsShut('worker', async () => {
        await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
        await isCaught('worker');
        other = new Poller(partner.sandbox).catchUp();
        await isCaught('api');
      });
      // An earlier reader would assign positions as well and wait at the gate of its process.
      await eventually('the worker has committed', async () => {
        const { rows } = await service.database.pool.query(
          'SELECT 1 FROM events WHERE partner_id = $1 AND position IS NOT NULL',
          [partner.id],
        );
        return rows.length === 2;
      });
      await poller.catchUp();
      expect(poller.seen).toHaveLength(2);
    });
    await other;
    await poller.catchUp();
    expect(poller.seen).toHaveLength(2);
  });
});
