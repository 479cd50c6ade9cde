import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { FAST, listDeliveries, recordEvents, type RegisteredEndpoint, registerEndpoint } from './support.js';

const SINCE = '2026-01-01T00:00:00Z';
/** Two at a time: a replay of six is under way for more than a second. */
const ENDED = 6;
const PER_SECOND = 4;

interface Tracked {
  readonly id: string;
  readonly status: string;
  readonly until: string;
  readonly total: number;
  readonly created: number;
}

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let endpoint: RegisteredEndpoint;

beforeEach(async () => {
  const env = {
    ...FAST,
    LEASE_MS: '60000',
    WEBHOOK_TIMEOUT_MS: '20000',
    WEBHOOK_REPLAY_PER_SECOND: String(PER_SECOND),
  };
  service = await startTestService({ env });
  receiver = await startReceiver();
  partner = await service.createPartner('Replayer');
  endpoint = await registerEndpoint(service, partner.id, { url: receiver.url });
  await record(ENDED);
  await eventually('they are delivered', async () => (await countOf('delivered')) === ENDED);
});
afterEach(async () => {
  await service.stop();
  await receiver.close();
});

const record = (count: number): Promise<void> =>
  recordEvents(
    service,
    Array.from({ length: count }, () => ({ partnerId: partner.id })),
  );

const countOf = async (status: string): Promise<number> =>
  (await listDeliveries(service, endpoint, `&status=${status}`)).length;

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

/** From now on every request waits, until what it answers is called: with 200, at once. */
function hold(): () => void {
  const waiting: (() => void)[] = [];
  receiver.answer = (_nth, _webhook, response) => waiting.push(() => response.writeHead(200).end());
  return () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    waiting.forEach((answer) => answer());
  };
}

describe('a replay repeats what had ended when it began, and nothing else', () => {
  it('and ends although its end is in the future and new events keep coming', async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const replay = await startReplay({ until });
    expect(replay.total).toBe(ENDED);
    // It says how far it goes: to its own beginning.
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

  it('not what was pending and is delivered meanwhile', async () => {
    const answerAll = hold();
    await record(2);
    await eventually('they are under way', () => receiver.received.length === ENDED + 2);
    const replay = await startReplay();
    answerAll();
    expect(replay.total).toBe(ENDED);
    expect(await completed(replay)).toMatchObject({ total: ENDED, created: ENDED });
    // The last two are delivered by now, once.
    expect(receiver.received).toHaveLength(2 * ENDED + 2);
  });

  it('not what was answered before, and is recorded later', async () => {
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

  it('not what was held and is given up meanwhile', async () => {
    await service.admin.post(`${endpoint.path}/disable`, {});
    await record(2);
    const replay = await startReplay();
    expect(replay.total).toBe(ENDED);
    await service.admin.post(`${endpoint.path}/enable`, { held: 'discard' });
    expect(await completed(replay)).toMatchObject({ total: ENDED, created: ENDED });
    expect(receiver.received).toHaveLength(2 * ENDED);
  });
});
