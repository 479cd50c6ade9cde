import { createHmac, randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateDatabase } from '../../src/apps/migration.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { freePort } from '../harness/free-port.js';
import {
  eventually,
  openPool,
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { size } from '../harness/size.js';
import { Random } from '../../chaos/random.js';
import { recordEvents } from '../webhooks/support.js';

/** Fast, and safe against a stop: only a crash of the machine could lose rows. */
const SERVER_SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: 200 };

/** A PostgreSQL server for one test alone, that may be stopped and started while others use theirs. */
class OwnPostgres {
  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private server: EmbeddedPostgres,
    readonly database: TestDatabase,
  ) {}

  static async start(): Promise<OwnPostgres> {
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-storm-'));
    const port = await freePort();
    const server = await launch(folder, port);
    const url = server.url();
    await migrateDatabase(url);
    const pool = openPool(url, 4);
    return new OwnPostgres(folder, port, server, { url, pool, drop: () => pool.end() });
  }

  /** Ends every session, and starts on the same port and data after `downMs` milliseconds. */
  async restart(downMs: number): Promise<void> {
    await this.server.stop();
    await new Promise((resolve) => setTimeout(resolve, downMs));
    this.server = await launch(this.folder, this.port);
  }

  async remove(): Promise<void> {
    await this.database.drop();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function launch(folder: string, port: number): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), port, settings: SERVER_SETTINGS });
}

/** One in ten is of the type that the troubled endpoints want. */
const EXPIRED_EVERY = 10;

/** Records events as any feature does, batch by batch, and again when the database was away. */
class EventSource {
  /** ICCIDs, one per event, of the batches whose commit was answered. */
  readonly accepted = new Set<string>();
  private made = 0;

  constructor(private readonly service: TestService) {}

  /** Repeats until a batch is committed. A batch whose commit was not answered may be there as well. */
  async recordBatch(partnerId: string, size: number): Promise<void> {
    for (;;) {
      const batch = Array.from({ length: size }, (_, index) => ({
        partnerId,
        iccid: `89${String(this.made++).padStart(17, '0')}`,
        type: index % EXPIRED_EVERY === 0 ? ('esim.expired' as const) : ('esim.activated' as const),
      }));
      try {
        await recordEvents(this.service, batch);
        batch.forEach(({ iccid }) => this.accepted.add(iccid));
        return;
      } catch {
        await sleep(200);
      }
    }
  }
}

/** How a receiver behaves during the storm. */
type Behaviour = 'good' | 'slow' | 'failing' | 'hanging' | 'resetting' | 'flapping';

const SLOW_MS = 300;
const FLAP_EVERY_MS = 1_500;

const BEHAVIOURS: Record<Behaviour, (response: ServerResponse) => void> = {
  good: (response) => void response.writeHead(200).end(),
  slow: (response) => void setTimeout(() => response.writeHead(200).end(), SLOW_MS),
  failing: (response) => void response.writeHead(500).end(),
  hanging: () => undefined,
  resetting: (response) => response.socket?.resetAndDestroy(),
  flapping: (response) => {
    const up = Math.floor(performance.now() / FLAP_EVERY_MS) % 2 === 0;
    response.writeHead(up ? 200 : 500).end();
  },
};

/** A receiver that counts what it gets, by event and by delivery, and checks every signature by itself. */
class StormReceiver {
  readonly byEvent = new Map<string, number>();
  readonly byDelivery = new Map<string, number>();
  badSignatures = 0;
  total = 0;
  /** The most attempts that were open at once. */
  mostOpen = 0;
  private open = 0;
  /** The endpoint's signing secret, known after its registration. */
  secret = '';
  private calm = false;

  private constructor(
    private readonly receiver: TestReceiver,
    readonly behaviour: Behaviour,
  ) {
    receiver.answer = (_nth, webhook, response) => {
      this.note(webhook);
      this.mostOpen = Math.max(this.mostOpen, ++this.open);
      response.once('close', () => this.open--);
      receiver.received.length = 0;
      BEHAVIOURS[this.calm ? 'good' : behaviour](response);
    };
  }

  static async start(behaviour: Behaviour): Promise<StormReceiver> {
    return new StormReceiver(await startReceiver(), behaviour);
  }

  get url(): string {
    return this.receiver.url;
  }

  /** Webhooks beyond the first of their event. */
  get duplicates(): number {
    return this.total - this.byEvent.size;
  }

  /** From now on it is a good one. */
  calmDown(): void {
    this.calm = true;
  }

  close(): Promise<void> {
    return this.receiver.close();
  }

  private note(webhook: ReceivedWebhook): void {
    this.total++;
    const { id } = JSON.parse(webhook.body) as { id: string };
    increment(this.byEvent, id);
    increment(this.byDelivery, String(webhook.headers['x-service-delivery']));
    if (!this.isSigned(webhook)) this.badSignatures++;
  }

  private isSigned({ headers, body }: ReceivedWebhook): boolean {
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-service-signature'])) ?? [];
    return createHmac('sha256', this.secret).update(`${t}.${body}`).digest('hex') === v1;
  }
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** One endpoint's side of the equation of D33, read in one snapshot. */
interface EndpointBooks {
  readonly id: string;
  readonly status: 'enabled' | 'disabled';
  /** Events of its partner, mode and types. */
  readonly events: number;
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly held: number;
  readonly discarded: number;
}

/** The equation, for every endpoint, at one moment. */
async function readEquation({ pool }: TestDatabase): Promise<readonly EndpointBooks[]> {
  const { rows } = await pool.query<EndpointBooks>(
    `WITH owed AS (
       SELECT w.id, count(*)::int AS events FROM webhook_endpoints w
       JOIN events e ON e.partner_id = w.partner_id AND e.mode = w.mode
         AND (w.event_types IS NULL OR e.type = ANY (w.event_types))
       GROUP BY w.id
     ), first_deliveries AS (
       SELECT d.endpoint_id AS id, count(*) FILTER (WHERE d.status = 'delivered')::int AS delivered,
              count(*) FILTER (WHERE d.status = 'failed')::int AS failed,
              count(*) FILTER (WHERE d.status = 'pending')::int AS pending,
              count(*) FILTER (WHERE d.status = 'discarded')::int AS discarded
       FROM webhook_deliveries d WHERE d.kind = 'event' GROUP BY d.endpoint_id
     )
     SELECT w.id, CASE WHEN w.enabled THEN 'enabled' ELSE 'disabled' END AS status,
            coalesce(o.events, 0) AS events, coalesce(f.delivered, 0) AS delivered, coalesce(f.failed, 0) AS failed,
            CASE WHEN w.enabled THEN coalesce(f.pending, 0) ELSE 0 END AS pending,
            CASE WHEN w.enabled THEN 0 ELSE coalesce(f.pending, 0) END AS held,
            coalesce(f.discarded, 0) AS discarded
     FROM webhook_endpoints w LEFT JOIN owed o ON o.id = w.id LEFT JOIN first_deliveries f ON f.id = w.id
     ORDER BY w.id`,
  );
  return rows;
}

function isBalanced(books: EndpointBooks): boolean {
  const { events, delivered, failed, pending, held, discarded } = books;
  return events === delivered + failed + pending + held + discarded;
}

/** Attempts under way, of one worker or of all: what a death at this moment may make arrive twice. */
async function inFlight({ pool }: TestDatabase, workerPid?: number): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM webhook_deliveries d
     JOIN webhook_endpoint_leases l ON l.endpoint_id = d.endpoint_id AND l.fence = d.started_fence
     WHERE l.owner LIKE $1`,
    [workerPid === undefined ? '%' : `${workerPid}-%`],
  );
  return rows[0]!.n;
}

interface LoggedDelivery {
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly status: string;
  readonly attempts: number;
  readonly interrupted: number;
  readonly failed: number;
}

/** Every delivery with what the attempt log says of it. */
async function readDeliveries({ pool }: TestDatabase): Promise<readonly LoggedDelivery[]> {
  const { rows } = await pool.query<LoggedDelivery>(
    `SELECT d.id, d.endpoint_id, d.event_id, d.status, count(a.*)::int AS attempts,
            count(*) FILTER (WHERE a.outcome = 'interrupted')::int AS interrupted,
            count(*) FILTER (WHERE a.outcome = 'failed')::int AS failed
     FROM webhook_deliveries d LEFT JOIN webhook_attempts a ON a.delivery_id = d.id
     GROUP BY d.id, d.endpoint_id, d.event_id, d.status`,
  );
  return rows;
}

const SEED = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
/** Each partner has a good endpoint for all of its events and a troubled one for a tenth of them. */
const TROUBLES: readonly Behaviour[] = ['slow', 'failing', 'hanging', 'resetting', 'flapping'];
const PARTNERS = size('STORM_PARTNERS', 2 * TROUBLES.length, 2 * TROUBLES.length);
/** Attempts of one endpoint at once, over all workers (D34). */
const MOST_OPEN = 16;
const EVENTS_PER_PARTNER = size('STORM_EVENTS', 400, 2_000);
const BATCH = 100;
const KILLS = size('STORM_KILLS', 6, 9);
const KILL_EVERY_MS = { min: 1_000, max: 3_000 };
/** After which kills something else happens as well. */
const DATABASE_RESTARTS = [2, 5];
const QUEUE_LOSS = 3;
const DATABASE_DOWN_MS = 500;
const ENV = {
  // A living worker that has no core for seconds must not lose what it has in hand: the last test counts deaths alone.
  LEASE_MS: '20000',
  SWEEP_INTERVAL_MS: '250',
  WEBHOOK_TIMEOUT_MS: '1000',
  WEBHOOK_RETRY_DELAYS_MS: '100,100,200,200,300',
  WEBHOOK_BLOCK_MS: '500',
};

const random = new Random(SEED);
let postgres: OwnPostgres;
let office: TestService;
let source: EventSource;
let workers: RoleChild[] = [];
const receivers = new Map<string, StormReceiver>();
const paths = new Map<string, string>();
const partners: string[] = [];
/** Attempts under way when something died: each of them may arrive a second time, and nothing else may. */
const cut = { byKills: 0, byRestarts: 0 };
let checks = 0;

beforeAll(async () => {
  console.log(`CHAOS_SEED=${SEED}`);
  postgres = await OwnPostgres.start();
  const { database } = postgres;
  office = await startTestService({ role: 'admin', database });
  source = new EventSource(office);
  for (let i = 0; i < PARTNERS; i++) {
    const { id } = await office.createPartner();
    partners.push(id);
    await register(id, 'good');
    await register(id, TROUBLES[i % TROUBLES.length]!, ['esim.expired']);
  }
  const start = () => RoleChild.start({ role: 'worker', database, env: ENV });
  workers = await Promise.all([start(), start()]);
});

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  await Promise.all([...receivers.values()].map((receiver) => receiver.close()));
  await office?.stop();
  await postgres?.remove();
});

async function register(partnerId: string, behaviour: Behaviour, event_types?: string[]): Promise<void> {
  const receiver = await StormReceiver.start(behaviour);
  const collection = `/internal/v1/partners/${partnerId}/webhook-endpoints`;
  const fields = { mode: 'sandbox', url: receiver.url, ...(event_types ? { event_types } : {}) };
  const { body } = await office.admin.post(collection, fields);
  receiver.secret = body.data.secret as string;
  receivers.set(body.data.id as string, receiver);
  paths.set(body.data.id as string, `${collection}/${body.data.id}`);
}

async function recordEverything(): Promise<void> {
  for (let batch = 0; batch < EVENTS_PER_PARTNER / BATCH; batch++) {
    for (const partnerId of partners) await source.recordBatch(partnerId, BATCH);
  }
}

async function killAndRestart(): Promise<void> {
  const victim = random.pick(workers);
  const { pid } = victim;
  await victim.kill();
  // Statements of the dead that PostgreSQL still had in hand end first.
  await sleep(50);
  cut.byKills += await inFlight(postgres.database, pid);
  await victim.restart();
}

async function restartDatabase(): Promise<void> {
  const before = await inFlight(postgres.database);
  await postgres.restart(DATABASE_DOWN_MS);
  cut.byRestarts += Math.max(before, await inFlight(postgres.database));
}

async function expectBalance(): Promise<readonly EndpointBooks[]> {
  const books = await readEquation(postgres.database);
  expect(books.filter((endpoint) => !isBalanced(endpoint))).toEqual([]);
  checks++;
  return books;
}

async function storm(): Promise<void> {
  for (let kill = 1; kill <= KILLS; kill++) {
    await sleep(random.between(KILL_EVERY_MS.min, KILL_EVERY_MS.max));
    if (DATABASE_RESTARTS.includes(kill)) await restartDatabase();
    if (kill === QUEUE_LOSS) await postgres.database.pool.query('TRUNCATE bullmq.job CASCADE');
    await killAndRestart();
    await expectBalance();
  }
}

/** Everybody is well again; whoever was disabled is enabled, and gets what was held. */
async function calmDown(): Promise<void> {
  for (const receiver of receivers.values()) receiver.calmDown();
  for (const { id, status } of await readEquation(postgres.database)) {
    if (status === 'disabled') await office.admin.post(`${paths.get(id)}/enable`);
  }
}

/** A receiver that comes back may be disabled by what was in flight before: it is enabled again. */
async function everythingEnded(): Promise<readonly EndpointBooks[]> {
  return eventually('nothing is owed', async () => {
    const books = await expectBalance();
    if (books.some(({ status }) => status === 'disabled')) await calmDown();
    await sleep(250);
    return books.every(({ pending, held }) => pending + held === 0) ? books : null;
  });
}

describe(`a storm over ${2 * PARTNERS} endpoints (CHAOS_SEED=${SEED})`, () => {
  let books: readonly EndpointBooks[];
  let disabledByStorm = 0;

  it(`of ${KILLS} deaths, two database restarts and a lost queue ends with nothing owed, always in balance`, async () => {
    const startedAt = performance.now();
    const recording = recordEverything();
    await Promise.all([recording, storm()]);
    const stormS = (performance.now() - startedAt) / 1_000;
    disabledByStorm = (await readEquation(postgres.database)).filter((b) => b.status === 'disabled').length;
    await calmDown();
    books = await everythingEnded();
    const totalS = (performance.now() - startedAt) / 1_000;
    console.log(
      `storm ${stormS.toFixed(0)} s, ended after ${totalS.toFixed(0)} s, ${checks} balances checked`,
    );
  }, 600_000);

  it('lost no event: each was delivered to every good endpoint of its partner, and each accepted one exists', async () => {
    const { rows } = await postgres.database.pool.query<{ id: string; partner_id: string; iccid: string }>(
      `SELECT id, partner_id, body::jsonb -> 'data' ->> 'iccid' AS iccid FROM events`,
    );
    const recorded = new Set(rows.map((row) => row.iccid));
    expect([...source.accepted].filter((iccid) => !recorded.has(iccid))).toEqual([]);
    expect(source.accepted.size).toBe(PARTNERS * EVENTS_PER_PARTNER);
    let lost = 0;
    for (const [partner, good] of goodReceivers()) {
      lost += rows.filter((row) => row.partner_id === partner && !good.byEvent.has(row.id)).length;
    }
    const pairs = books.reduce((sum, { events }) => sum + events, 0);
    console.log(`${rows.length} events, ${pairs} (event, endpoint) pairs, lost ${lost}`);
    expect(lost).toBe(0);
    expect(pairs).toBeGreaterThanOrEqual(PARTNERS * EVENTS_PER_PARTNER);
  });

  it('sent nothing twice but what was in flight at a death, and logged every request', async () => {
    const deliveries = await readDeliveries(postgres.database);
    const unlogged = deliveries.filter(
      ({ id, endpoint_id, attempts }) => (receivers.get(endpoint_id)!.byDelivery.get(id) ?? 0) > attempts,
    );
    expect(unlogged).toEqual([]);
    const good = [...goodReceivers().values()];
    const duplicates = good.reduce((sum, receiver) => sum + receiver.duplicates, 0);
    // A good receiver that this busy process lets answer too late gets it again, as it must.
    const late = deliveries.reduce(
      (sum, { endpoint_id, failed }) => sum + (good.includes(receivers.get(endpoint_id)!) ? failed : 0),
      0,
    );
    const all = [...receivers.values()];
    const requests = all.reduce((sum, receiver) => sum + receiver.total, 0);
    const interrupted = deliveries.reduce((sum, delivery) => sum + delivery.interrupted, 0);
    console.log(
      `${requests} requests, ${interrupted} attempts interrupted, ${duplicates} duplicates at good endpoints, ${late} ` +
        `answered by them too late; in flight ` +
        `at ${KILLS} kills ${cut.byKills}, at ${DATABASE_RESTARTS.length} database restarts ${cut.byRestarts}; ` +
        `${disabledByStorm} endpoints disabled by the storm`,
    );
    expect(duplicates).toBeLessThanOrEqual(interrupted + late);
    expect(interrupted).toBeLessThanOrEqual(cut.byKills + cut.byRestarts);
    expect(all.reduce((sum, receiver) => sum + receiver.badSignatures, 0)).toBe(0);
    expect(Math.max(...all.map(({ mostOpen }) => mostOpen))).toBeLessThanOrEqual(MOST_OPEN);
  });

  it('delivered or gave up every event of the troubled endpoints: none is silently gone', async () => {
    const delivered = (await readDeliveries(postgres.database)).filter(
      ({ status }) => status === 'delivered',
    );
    const unseen = delivered.filter((d) => !receivers.get(d.endpoint_id)!.byEvent.has(d.event_id));
    expect(unseen).toEqual([]);
    expect(books.filter(({ discarded }) => discarded > 0)).toEqual([]);
    console.log(
      books
        .map(
          ({ id, ...b }) =>
            `${receivers.get(id)!.behaviour}: ${b.events} = ${b.delivered} + ${b.failed} failed`,
        )
        .filter((line) => !line.startsWith('good'))
        .join('; '),
    );
  });
});

/** The good receiver of each partner. */
function goodReceivers(): Map<string, StormReceiver> {
  const found = [...receivers].filter(([, receiver]) => receiver.behaviour === 'good');
  return new Map(found.map(([id, receiver]) => [/partners\/([^/]+)/.exec(paths.get(id)!)![1]!, receiver]));
}
