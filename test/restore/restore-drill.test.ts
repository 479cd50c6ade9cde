import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, type Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateDatabase } from '../../src/apps/migration.js';
import { runRestoreEpoch } from '../../src/apps/restore-epoch.app.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { freePort } from '../../chaos/free-port.js';
import { eventually, openPool, type TestDatabase, testEnvironment } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { expectBooksInOrder } from '../live/books.js';
import { EsimAccessUpstream } from '../live/esim-access-upstream.js';
import { KillableShop } from '../live/killable-shop.js';
import { buy, type Buyer, esimIdsOf, money, settled } from '../live/shop.js';
import type { Upstream } from '../live/upstream.js';
import { ZenditUpstream } from '../live/zendit-upstream.js';

/**
 * Restores a data directory to an earlier time while both providers keep what they sold since:
 *
 *   before   an eSIM is issued; an order is accepted that no worker has claimed
 * lost     that order is bought and issued; another order and a top-up are placed, bought and announced; a feed reader
 *            has seen everything
 *   after    `npm run restore-epoch` runs, workers start again, and the partner repeats its calls with the same keys
 */

const SETTINGS = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_connections: 200 };

/** A database on a separate server, whose data directory can be restored. */
class RestorableDatabase implements TestDatabase {
  private constructor(
    private readonly folder: string,
    private postgres: EmbeddedPostgres,
    readonly pool: Pool,
  ) {}

  static async create(): Promise<RestorableDatabase> {
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-restore-'));
    // No other program gets this port while the server is down.
    const port = await freePort();
    const dataDir = path.join(folder, 'data');
    const postgres = await startEmbeddedPostgres({ dataDir, port, settings: SETTINGS });
    const client = new Client({ connectionString: postgres.url() });
    await client.connect();
    await client.query('CREATE DATABASE esim');
    await client.end();
    const url = postgres.url('esim');
    await migrateDatabase(url);
    return new RestorableDatabase(folder, postgres, openPool(url, 4));
  }

  get url(): string {
    return this.postgres.url('esim');
  }

  /** Stops the server, copies its data directory and restarts it. Returns the time of the copy. */
  async backUp(): Promise<Date> {
    await this.postgres.stop();
    const at = new Date();
    this.copy('data', 'backup');
    await this.start();
    return at;
  }

  /** Discards everything since the copy. The caller has stopped every role. */
  async restore(): Promise<void> {
    await this.postgres.stop();
    rmSync(path.join(this.folder, 'data'), { recursive: true });
    this.copy('backup', 'data');
    await this.start();
  }

  async drop(): Promise<void> {
    await this.pool.end();
    await this.postgres.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Preserves the owner, which is not root even when the test runs as root. */
  private copy(from: string, to: string): void {
    execFileSync('cp', ['-a', path.join(this.folder, from), path.join(this.folder, to)]);
  }

  /** Starts on the same port, which the folder records. */
  private async start(): Promise<void> {
    const dataDir = path.join(this.folder, 'data');
    this.postgres = await startEmbeddedPostgres({ dataDir, port: this.postgres.port, settings: SETTINGS });
  }
}

/** A call of the partner with the key that it uses for repetitions. */
interface Wish {
  readonly path: string;
  readonly body: object;
  readonly key: string;
}

/** The purchases at one provider in this drill. */
interface Story {
  readonly upstream: Upstream;
  /** Issued before the copy. */
  readonly kept: Json;
  /** Accepted before the copy, bought after it. */
  readonly openOrder: Json;
  readonly lostOrder: Wish;
  readonly lostTopup: Wish;
  /** The objects as announced in the lost time, in the order of the fields above. */
  told: { readonly openOrder: Json; readonly lostOrder: Json; readonly lostTopup: Json } | null;
}

let house: KillableShop;
let database: RestorableDatabase;
let buyer: Buyer;
let upstreams: readonly (EsimAccessUpstream | ZenditUpstream)[];

beforeAll(async () => {
  upstreams = [await EsimAccessUpstream.start(), await ZenditUpstream.start()];
  database = await RestorableDatabase.create();
  house = await KillableShop.open(upstreams, database);
  buyer = await house.shop.buyer(1_000_000);
});

afterAll(() => house.close());

async function call({ path, body, key }: Wish): Promise<Json> {
  const answer = await buyer.api.post(path, body, { idempotencyKey: key });
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

/** A partner that stores only its cursor. */
class FeedReader {
  readonly events: Json[] = [];
  private after = '';

  async readOn(): Promise<void> {
    for (let hasMore = true; hasMore;) {
      const answer = await buyer.api.get(`/v1/events?limit=100${this.after}`);
      expect(answer.status, answer.text).toBe(200);
      this.events.push(...(answer.body.data as Json[]));
      if (answer.body.next_cursor !== null)
        this.after = `&after=${encodeURIComponent(answer.body.next_cursor as string)}`;
      hasMore = answer.body.has_more as boolean;
    }
  }

  has(type: string, id: unknown): boolean {
    return this.events.some(
      (event) => event['type'] === type && JSON.stringify(event['data']).includes(String(id)),
    );
  }
}

async function begin(upstream: Upstream, kept: Json): Promise<Story> {
  const [esimId] = esimIdsOf(kept);
  const orderOf = (key: string): Wish => ({
    path: '/v1/orders',
    body: { package_id: upstream.packageId, quantity: 2 },
    key,
  });
  return {
    upstream,
    kept,
    openOrder: await call(orderOf(randomUUID())),
    lostOrder: orderOf(randomUUID()),
    lostTopup: {
      path: '/v1/topups',
      body: { esim_id: esimId, package_id: upstream.topupPackageId },
      key: randomUUID(),
    },
    told: null,
  };
}

/** Places and buys in the time that will be lost. */
async function live(story: Story): Promise<void> {
  const [openOrder, lostOrder, lostTopup] = await Promise.all([
    settled(buyer, story.openOrder),
    call(story.lostOrder).then((placed) => settled(buyer, placed)),
    call(story.lostTopup).then((placed) => settled(buyer, placed)),
  ]);
  expect([openOrder, lostOrder, lostTopup].map((told) => told['status'])).toEqual([
    'issued',
    'issued',
    'completed',
  ]);
  story.told = { openOrder, lostOrder, lostTopup };
}

interface Repair {
  readonly code: number;
  readonly text: string;
}

async function repair(...args: readonly string[]): Promise<Repair> {
  const lines: string[] = [];
  const keep = (line: string): void => void lines.push(line);
  const code = await runRestoreEpoch(args, testEnvironment(database.url, house.env), {
    log: keep,
    error: keep,
  });
  return { code, text: lines.join('\n') };
}

function bought(upstream: Upstream): number {
  return upstream.references().reduce((sum, reference) => sum + upstream.account(reference).bought, 0);
}

describe('a database that is restored to an earlier time', () => {
  it('buys nothing twice, and a reader with its old cursor misses nothing', async () => {
    const reader = new FeedReader();
    const kept = await Promise.all(upstreams.map(({ packageId }) => buy(buyer, packageId)));
    await house.worker.kill();
    const stories = await Promise.all(upstreams.map((upstream, i) => begin(upstream, kept[i]!)));
    await house.api.kill();
    const restoredTo = await database.backUp();

    await Promise.all([house.api.restart(), house.worker.restart()]);
    await Promise.all(stories.map((story) => live(story)));
    const balance = await money(buyer);
    await eventually('the reader has seen the lost time', async () => {
      await reader.readOn();
      return stories.every(({ told }) => reader.has('order.issued', told!.lostOrder['id']));
    });
    const soldBefore = upstreams.map((upstream) => bought(upstream));
    const seenBefore = reader.events.length;
    await Promise.all([house.api.kill(), house.worker.kill()]);
    await database.restore();

    // With a provider down, writes stay blocked, and the same command can continue later.
    const to = ['--to', restoredTo.toISOString()];
    await house.api.restart();
    upstreams[1]!.talkNonsense(100, 'server_error');
    const refused = await repair(...to);
    expect(refused).toMatchObject({ code: 1, text: expect.stringContaining('ERROR zendit did not respond') });
    const write = await buyer.api.post('/v1/orders', stories[0]!.lostOrder.body);
    expect([write.status, write.body.code, write.headers.get('retry-after')]).toEqual([
      503,
      'service_unavailable',
      '30',
    ]);
    expect((await buyer.api.get('/v1/orders')).status).toBe(200);
    upstreams[1]!.calmDown();

    // A worker that is started too early claims nothing, and the command reports it.
    await house.worker.restart();
    expect(await repair(...to)).toMatchObject({
      code: 2,
      text: expect.stringContaining('workers are still connected'),
    });
    for (const { openOrder } of stories)
      expect(await house.shop.row(openOrder['id'] as string)).toMatchObject({
        status: 'pending',
        upstream_attempts: 1,
      });
    await house.worker.kill();
    await eventually('its connections are gone', async () => {
      const { rows } = await database.pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'partner-esim-worker%'`,
      );
      return rows.length === 0;
    });
    const repaired = await repair(...to);
    expect(repaired.code, repaired.text).toBe(0);
    expect(repaired.text).toContain('repaired, but writes are still blocked');
    // Keys must be revoked again before anything is sold.
    await house.shop.office.createPartner('Made meanwhile');
    expect((await buyer.api.post('/v1/orders', stories[0]!.lostOrder.body)).status).toBe(503);
    const done = await repair(...to, '--open');
    expect(done.code, done.text).toBe(0);
    for (const { told } of stories) expect(done.text).not.toContain(told!.lostOrder['id']);
    expect(done.text).toContain(`partner ${buyer.id}`);
    expect(done.text.match(/^UNCLAIMED order /gm)).toHaveLength(2);
    // We do not know under which reference eSIM Access lists top-ups, so the command searches for them.
    expect(done.text.match(/^UNCLAIMED topup /gm)).toHaveLength(1);

    await eventually('writes are taken again (within a second, WRITES_KEPT_MS)', async () => {
      const { status } = await buyer.api.post('/v1/orders', {});
      return status === 400;
    });

    await house.worker.restart();
    const after = await Promise.all(
      stories.map(async ({ openOrder, lostOrder, lostTopup }) => ({
        openOrder: await settled(buyer, openOrder),
        lostOrder: await call(lostOrder).then((placed) => settled(buyer, placed)),
        lostTopup: await call(lostTopup).then((placed) => settled(buyer, placed)),
      })),
    );
    const iccidsOf = (order: Json): unknown[] =>
      (order['esims'] as Json[]).map((esim) => esim['iccid']).sort();
    for (const [i, { told }] of stories.entries()) {
      const now = after[i]!;
      expect(now.openOrder).toMatchObject({ status: 'issued', id: told!.openOrder['id'] });
      // A partner that keeps the newest version of an object must not discard the new one as old (D48).
      expect(now.openOrder['version']).toBeGreaterThan(told!.openOrder['version'] as number);
      expect(now.lostOrder).toMatchObject({ status: 'issued', quantity_issued: 2 });
      expect(now.lostTopup).toMatchObject({ status: 'completed' });
      expect([iccidsOf(now.openOrder), iccidsOf(now.lostOrder)]).toEqual([
        iccidsOf(told!.openOrder),
        iccidsOf(told!.lostOrder),
      ]);
    }
    expect(upstreams.map((upstream) => bought(upstream))).toEqual(soldBefore);
    for (const [i, upstream] of upstreams.entries()) {
      const reference = await house.shop.referenceOf(after[i]!.lostTopup['id'] as string);
      expect([upstream.name, upstream.topupsOf(reference)]).toEqual([upstream.name, 1]);
    }
    expect(await money(buyer)).toEqual(balance);

    await eventually('the reader has seen what came after', async () => {
      await reader.readOn();
      return after.every(
        ({ openOrder, lostOrder, lostTopup }) =>
          reader.events
            .slice(seenBefore)
            .filter((event) => JSON.stringify(event).includes(openOrder['id'] as string)).length > 0 &&
          reader.has('order.issued', lostOrder['id']) &&
          reader.has('order.topup.completed', lostTopup['id']),
      );
    });
    const status = await repair('--status');
    expect(status).toMatchObject({
      code: 0,
      text: expect.stringContaining('unclaimed purchases: 0, claimed by a repeated call: 3'),
    });
    await expectBooksInOrder(house.shop);
  });
});
