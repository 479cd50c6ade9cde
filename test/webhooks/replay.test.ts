import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { postAtOnce } from '../harness/order-steps.js';
import {
  endpointState,
  FAST,
  listDeliveries,
  recordEvents,
  type RegisteredEndpoint,
  registerEndpoint,
} from './support.js';

const SINCE = '2026-01-01T00:00:00Z';
const PER_SECOND = 20;
/** More than the runner reads in one tick. */
const OTHERS = 120;
/** Three thousand sequential statements, each of which waits for a core on a busy machine. */
const STARVED_MS = 240_000;
const ENV = { ...FAST, LEASE_MS: '60000', WEBHOOK_REPLAY_PER_SECOND: String(PER_SECOND) };

let service: TestService;
/** A second process that runs replays as well. */
let worker: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let endpoint: RegisteredEndpoint;

beforeAll(async () => {
  service = await startTestService({ env: ENV });
  worker = await startTestService({ role: 'worker', env: ENV, database: service.database });
});
beforeEach(async () => {
  receiver = await startReceiver();
  partner = await service.createPartner('Replayer');
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
});
afterEach(() => receiver.close());
afterAll(async () => {
  await worker.stop();
  await service.stop();
});

async function deliverEvents(count: number, type?: 'esim.expired'): Promise<void> {
  const before = receiver.received.length;
  const events = Array.from({ length: count }, () => ({ partnerId: partner.id, ...(type ? { type } : {}) }));
  await recordEvents(service, events);
  await eventually('they are delivered', () => Promise.resolve(receiver.received.length === before + count));
  await eventually(
    'and recorded',
    async () => (await listDeliveries(service, endpoint, '&status=pending')).length === 0,
  );
}

const replay = (body: object): ReturnType<TestService['admin']['post']> =>
  service.admin.post(`${endpoint.path}/replay`, body);

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the body is checked field by field
async function trackedReplay(id: string): Promise<any> {
  return (await service.admin.get(`/internal/v1/replays/${id}`)).body.data;
}

/** First, because the metrics cover all endpoints. */
describe('webhook monitoring', () => {
  /** A gauge covers the database, a counter only its process. */
  const metric = async (name: string, labels = '', of = [service]): Promise<number> => {
    const texts = await Promise.all(of.map(({ process }) => process.resources.metrics.metrics()));
    return texts
      .flatMap((text) => text.split('\n'))
      .filter((line) => line.startsWith(`${name}{`) && line.includes(labels))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };

  it('counts first deliveries by status so that they add up to events x endpoints (D33)', async () => {
    const second = await registerEndpoint(service, partner.id, {
      url: receiver.url,
      event_types: ['esim.expired'],
    });
    await deliverEvents(2);
    await service.admin.post(`${second.path}/disable`, {});
    await recordEvents(service, [{ partnerId: partner.id, type: 'esim.expired' }]);
    const { id } = (await replay({ since: SINCE })).body.data;
    await service.admin.post(`${endpoint.path}/test`, {});
    await eventually('it is completed', async () => (await trackedReplay(id)).status === 'completed');
    await eventually('all is sent', async () =>
      (await listDeliveries(service, endpoint, '&status=pending')).length === 0 ? true : null,
    );
    await eventually('the metrics say so', async () => {
      const delivered = await metric('webhook_deliveries', 'kind="event",status="delivered"');
      const held = await metric('webhook_deliveries', 'kind="event",status="held"');
      return delivered === 3 && held === 1;
    });
    // Three events: two for one endpoint each, and one for both.
    expect(await metric('webhook_deliveries', 'kind="event"')).toBe(4);
  });

  it('reports every block and the disabling once, oldest first', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await recordEvents(
      service,
      Array.from({ length: 12 }, () => ({ partnerId: partner.id })),
    );
    for (let i = 0; i < 5; i++) {
      await eventually('blocked or disabled', async () => {
        const { consecutive_blocks } = await endpointState(service, endpoint);
        return consecutive_blocks >= i + 1;
      });
      await recordEvents(service, [{ partnerId: partner.id }]);
    }
    const { body } = await service.admin.get(`/internal/v1/alerts?subject_id=${endpoint.id}`);
    const types = (body.data as { type: string }[]).map(({ type }) => type);
    expect(types).toEqual([...Array<string>(4).fill('endpoint.blocked'), 'endpoint.disabled']);
    expect(body.data.map((alert: { details: object }) => alert.details)).toEqual(
      [1, 2, 3, 4, 5].map((consecutive_blocks) => ({ consecutive_blocks })),
    );
    const page = await service.admin.get(`/internal/v1/alerts?subject_id=${endpoint.id}&limit=2`);
    const rest = await service.admin.get(
      `/internal/v1/alerts?subject_id=${endpoint.id}&limit=2&cursor=${page.body.next_cursor}`,
    );
    expect(rest.body.data[0].details).toEqual({ consecutive_blocks: 3 });
    expect(await metric('webhook_endpoint_blocks_total', '', [service, worker])).toBe(5);
    expect(await metric('webhook_endpoint_disables_total', '', [service, worker])).toBe(1);
  });
});

describe('a replay', () => {
  it('sends the same event ids and bytes as new deliveries, oldest first, and is tracked to its end', async () => {
    await deliverEvents(3);
    const originals = receiver.received.map(({ body }) => body.toString());
    const originalIds = receiver.received.map(({ headers }) => headers['x-service-delivery']);
    const started = await replay({ since: SINCE });
    expect(started.status).toBe(202);
    expect(started.body.data).toMatchObject({ status: 'running', dry_run: false, total: 3, created: 0 });
    const id = started.body.data.id as string;
    expect(id).toMatch(/^rpl_/);
    expect(started.headers.get('location')).toBe(`/internal/v1/replays/${id}`);
    const ended = await eventually('it is completed', async () => {
      const now = await trackedReplay(id);
      return now.status === 'completed' && now;
    });
    expect(ended).toMatchObject({ total: 3, created: 3, delivered: 3, failed: 0, pending: 0, discarded: 0 });
    const again = receiver.received.slice(3);
    expect(again.map(({ body }) => body.toString()).sort()).toEqual(originals.toSorted());
    for (const { headers } of again) expect(originalIds).not.toContain(headers['x-service-delivery']);
    const kinds = (await listDeliveries(service, endpoint)).map(({ kind }) => kind);
    expect(kinds.toSorted()).toEqual(['event', 'event', 'event', 'replay', 'replay', 'replay']);
  });

  it('only counts with dry_run: it stores and sends nothing', async () => {
    await deliverEvents(2);
    await deliverEvents(1, 'esim.expired');
    const counted = async (body: object): Promise<unknown> =>
      (await replay({ since: SINCE, dry_run: true, ...body })).body.data;
    expect(await counted({})).toMatchObject({ id: null, dry_run: true, status: null, total: 3 });
    expect(await counted({ event_types: ['esim.expired'] })).toMatchObject({ total: 1 });
    expect(await counted({ statuses: ['failed'] })).toMatchObject({ total: 0 });
    expect(await counted({ since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' })).toMatchObject({
      total: 0,
    });
    const { rows } = await service.database.pool.query(
      'SELECT count(*)::int AS n FROM webhook_backlog_jobs WHERE endpoint_id = $1',
      [endpoint.id],
    );
    expect(rows[0]).toEqual({ n: 0 });
    expect(receiver.received).toHaveLength(3);
  });

  it('runs once per Idempotency-Key', async () => {
    await deliverEvents(2);
    const [first, second] = await postAtOnce(service.admin, `${endpoint.path}/replay`, { since: SINCE }, 2);
    expect(first!.body.data.id).toBe(second!.body.data.id);
    await eventually(
      'completed',
      async () => (await trackedReplay(first!.body.data.id)).status === 'completed',
    );
    expect(receiver.received).toHaveLength(4);
  });

  it('keeps to its pace, can be canceled midway, and then sends nothing more', async () => {
    await deliverEvents(80);
    const startedAt = Date.now();
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await eventually('some are made', async () => (await trackedReplay(id)).created >= 10);
    const canceled = (await service.admin.post(`/internal/v1/replays/${id}/cancel`, {})).body.data;
    const elapsedMs = Date.now() - startedAt;
    expect(canceled.status).toBe('canceled');
    // 40 deliveries a second, created in steps of half a second. The first step runs at once.
    expect(canceled.created).toBeLessThanOrEqual(PER_SECOND * (elapsedMs / 1_000) + PER_SECOND);
    expect(canceled.created).toBeLessThan(80);
    expect(canceled.pending).toBe(0);
    const twice = await service.admin.post(`/internal/v1/replays/${id}/cancel`, {});
    expect(twice.status).toBe(200);
    await recordEvents(service, [{ partnerId: partner.id }]);
    await eventually('a later event passes', () => Promise.resolve(receiver.received.length > 80));
    expect((await trackedReplay(id)).created).toBe(canceled.created);
  });

  it('keeps its pace across two workers', async () => {
    await deliverEvents(100);
    const startedAt = performance.now();
    await replay({ since: SINCE });
    await eventually('all are sent', () => Promise.resolve(receiver.received.length === 200));
    // One second's worth is sent at once, and a worker that was delayed may catch up one more.
    const pacedMs = ((100 - 2 * PER_SECOND) / PER_SECOND) * 1_000;
    expect(performance.now() - startedAt).toBeGreaterThan(pacedMs);
  });

  it("shares each worker's rate with other replays of its partner", async () => {
    await deliverEvents(10);
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 10 }, () => replay({ since: SINCE })));
    await eventually('all are sent', () => Promise.resolve(receiver.received.length === 110));
    // In the first second, each of the two workers creates at most two seconds' worth.
    expect(performance.now() - startedAt).toBeGreaterThan(1_000);
  });

  it('ends before a large, earlier replay of the same partner if it has few events (D34)', async () => {
    await deliverEvents(80);
    await deliverEvents(10, 'esim.expired');
    const large = (await replay({ since: SINCE })).body.data.id as string;
    const small = (await replay({ since: SINCE, event_types: ['esim.expired'] })).body.data.id as string;
    const endOf = (id: string) =>
      eventually('it is completed', async () => (await trackedReplay(id)).ended_at as string | null);
    expect(Date.parse(await endOf(small))).toBeLessThan(Date.parse(await endOf(large)));
  });

  it('waits while the endpoint is disabled, and continues when it is enabled', async () => {
    await deliverEvents(2);
    await service.admin.post(`${endpoint.path}/disable`, {});
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await service.admin.post(`${endpoint.path}/enable`, {});
    await eventually('completed', async () => (await trackedReplay(id)).status === 'completed');
    expect(receiver.received).toHaveLength(4);
  });

  it('ends with its endpoint', async () => {
    await deliverEvents(2);
    await service.admin.post(`${endpoint.path}/disable`, {});
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await service.admin.call('DELETE', endpoint.path);
    await eventually('canceled', async () => (await trackedReplay(id)).status === 'canceled');
  });

  it.each([
    ['without since', {}],
    ['with an until before since', { since: SINCE, until: '2025-01-01T00:00:00Z' }],
    ['with an unknown status', { since: SINCE, statuses: ['pending'] }],
    ['without types', { since: SINCE, event_types: [] }],
    ['with an unknown field', { since: SINCE, rate: 5 }],
  ])('returns 400 and starts nothing %s', async (_what, body) => {
    const answer = await replay(body);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('validation_failed');
  });

  it('returns 404 for an unknown endpoint or replay, and cannot be canceled once it is completed', async () => {
    const other = `/internal/v1/partners/${partner.id}/webhook-endpoints/whe_01KAEXAMPLE000000000000000`;
    expect((await service.admin.post(`${other}/replay`, { since: SINCE })).status).toBe(404);
    expect((await service.admin.get('/internal/v1/replays/rpl_01KAEXAMPLE000000000000000')).status).toBe(404);
    const id = (await replay({ since: SINCE })).body.data.id as string;
    await eventually('completed', async () => (await trackedReplay(id)).status === 'completed');
    const refused = await service.admin.post(`/internal/v1/replays/${id}/cancel`, {});
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
  });
});

describe('the selection of a replay', () => {
  /** At four a second, a replay of six runs for more than a second. */
  const ENDED = 6;
  let shared: TestService;

  interface Tracked {
    readonly id: string;
    readonly status: string;
    readonly until: string;
    readonly total: number;
    readonly created: number;
  }

  beforeAll(async () => {
    shared = service;
    const env = { ...ENV, WEBHOOK_REPLAY_PER_SECOND: '4' };
    service = await startTestService({ env });
  });
  beforeEach(() => deliverEvents(ENDED));
  afterAll(async () => {
    await service.stop();
    service = shared;
  });

  const record = (count: number): Promise<void> =>
    recordEvents(
      service,
      Array.from({ length: count }, () => ({ partnerId: partner.id })),
    );

  async function startReplay(body: object = {}): Promise<Tracked> {
    const answer = await service.admin.post(`${endpoint.path}/replay`, { since: SINCE, ...body });
    expect(answer.status).toBe(202);
    return answer.body.data as Tracked;
  }

  async function completed({ id }: Tracked): Promise<Tracked> {
    return eventually('it is completed', async () => {
      const now = (await service.admin.get(`/internal/v1/replays/${id}`)).body.data as Tracked;
      return now.status === 'completed' && now;
    });
  }

  /** Holds every request until the returned function is called, which responds with 200 to all at once. */
  function hold(): () => void {
    const waiting: (() => void)[] = [];
    receiver.answer = (_nth, _webhook, response) => waiting.push(() => response.writeHead(200).end());
    return () => {
      receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
      waiting.forEach((answer) => answer());
    };
  }

  it('ends although its end is in the future and new events keep coming', async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const replay = await startReplay({ until });
    expect(replay.total).toBe(ENDED);
    // The replay ends at its own start time.
    expect(Date.parse(replay.until)).toBeLessThan(Date.parse(until) - 3_000_000);
    let stopped = false;
    const keepComing = (async () => {
      while (!stopped) await record(1);
    })();
    try {
      expect(await completed(replay)).toMatchObject({ total: ENDED, created: ENDED });
    } finally {
      stopped = true;
      await keepComing;
    }
  });

  it('excludes deliveries that were pending and are delivered in the meantime', async () => {
    const answerAll = hold();
    await record(2);
    await eventually('they are under way', () => receiver.received.length === ENDED + 2);
    const replay = await startReplay();
    answerAll();
    expect(replay.total).toBe(ENDED);
    expect(await completed(replay)).toMatchObject({ total: ENDED, created: ENDED });
    // The last two have been delivered once by now.
    expect(receiver.received).toHaveLength(2 * ENDED + 2);
  });

  it('excludes deliveries whose response arrived earlier and is recorded later', async () => {
    const answerAll = hold();
    await record(1);
    await eventually('it is under way', () => receiver.received.length === ENDED + 1);
    const client = await service.database.pool.connect();
    let replay: Tracked;
    try {
      await client.query('BEGIN');
      await client.query(
        `SELECT 1 FROM webhook_deliveries WHERE endpoint_id = $1 AND status = 'pending' FOR UPDATE`,
        [endpoint.id],
      );
      answerAll();
      await eventually('the recorder waits for the row', async () => {
        const { rows } = await service.database.pool.query(
          `SELECT 1 FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%WITH given AS%'`,
        );
        return rows.length > 0;
      });
      replay = await startReplay();
      await client.query('COMMIT');
    } finally {
      client.release();
    }
    expect(replay.total).toBe(ENDED);
    expect(await completed(replay)).toMatchObject({ total: ENDED, created: ENDED });
  });

  it('excludes deliveries that were held and are discarded in the meantime', async () => {
    await service.admin.post(`${endpoint.path}/disable`, {});
    await record(2);
    const replay = await startReplay();
    expect(replay.total).toBe(ENDED);
    await service.admin.post(`${endpoint.path}/enable`, { held: 'discard' });
    expect(await completed(replay)).toMatchObject({ total: ENDED, created: ENDED });
    expect(receiver.received).toHaveLength(2 * ENDED);
  });
});

describe(`a replay alongside ${OTHERS} others`, { timeout: STARVED_MS + 30_000 }, () => {
  /** Another endpoint, with the other replays. */
  let other: RegisteredEndpoint;

  beforeEach(async () => {
    await deliverEvents(1);
    other = await registerEndpoint(service, partner.id, { url: receiver.url });
  });
  afterEach(() => service.database.pool.query('DELETE FROM webhook_backlog_jobs'));

  const query = (text: string, values: unknown[] = []) => service.database.pool.query(text, values);

  /** Inserts replays that start before any other, at `step`, and repeat the one delivery of the other endpoint. */
  async function insertOthers(step: 'repeat' | 'await'): Promise<void> {
    await query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, ended_at,
                                       delivered_at)
       SELECT 'dlv_other', $1, partner_id, mode, event_id, event_type, kind, status, ended_at, delivered_at
       FROM webhook_deliveries WHERE endpoint_id = $2`,
      [other.id, endpoint.id],
    );
    await query(
      `INSERT INTO webhook_backlog_jobs (id, kind, step, endpoint_id, partner_id, since, until, statuses, total)
       SELECT 'rpl_0000' || n, 'replay', $3, $1, $2, now() - interval '1 hour', now(), '{delivered}', 1
       FROM generate_series(1, $4::int) AS n`,
      [other.id, partner.id, step, OTHERS],
    );
  }

  const running = async (): Promise<number | null> =>
    (await query(`SELECT 1 FROM webhook_backlog_jobs WHERE status = 'running'`)).rowCount;

  async function completeReplay(): Promise<void> {
    const started = await service.admin.post(`${endpoint.path}/replay`, { since: '2026-01-01T00:00:00Z' });
    const path = `/internal/v1/replays/${started.body.data.id}`;
    await eventually(
      'the replay is completed',
      async () => (await service.admin.get(path)).body.data.status === 'completed',
      STARVED_MS,
    );
  }

  it('runs while every step of the others fails: they remain, and the failure is counted (D43)', async () => {
    await query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'check_violation'; END $$;
                 CREATE TRIGGER refuse BEFORE INSERT ON webhook_deliveries_open FOR EACH ROW
                   WHEN (NEW.replay_id LIKE 'rpl_0000%') EXECUTE FUNCTION refuse()`);
    await insertOthers('repeat');
    await completeReplay();
    expect(await running()).toBe(OTHERS);
    await query('DROP FUNCTION refuse() CASCADE');
    const failed = await Promise.all(
      [service, worker].map(async ({ process }) =>
        /^sweep_runs_total\{sweep="webhooks.backlogs",outcome="failed".*\} (\d+)$/m.exec(
          await process.resources.metrics.metrics(),
        ),
      ),
    );
    expect(failed.some((found) => Number(found?.[1]) > 0)).toBe(true);
  });

  it('runs while the others wait for their receivers (D34)', async () => {
    await query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, replay_id,
                                       next_attempt_at)
       SELECT 'dlv_' || n, $1, $2, 'sandbox', 'evt_1', 'esim.activated', 'replay', 'pending', 'rpl_0000' || n,
              now() + interval '1 day'
       FROM generate_series(1, $3::int) AS n`,
      [other.id, partner.id, OTHERS],
    );
    await insertOthers('await');
    await completeReplay();
    expect(await running()).toBe(OTHERS);
  });
});
