/**
 * `npm run bench -- orders`: orders per second that one API process accepts: in Sandbox with and without a running
 * worker, and in Live on one wallet and on 1,000.
 * Baseline: a loop that repeats the SQL of one POST through `pg` alone, on the same wallets in the same rounds. The SQL
 * comes from PostgreSQL's log. The loop has no key check, rate limit or call log.
 * Read the ratios. The goal is 0.5. `life` measures an order through to its webhook.
 */
import type { BenchOptions } from './main.js';
import { captureOrder, describeCaptured } from './shared/captured-order.js';
import { Child, type Cleanups } from './shared/child.js';
import { DatabaseServer } from './shared/database-server.js';
import { ORDER, ORDERS_PATH } from './shared/http.js';
import type { LoadApi } from './shared/load.child.js';
import { detail, disturbance, interleave, measure, type Measurement, ratios } from './shared/measurement.js';
import { type BenchPartner, createLivePackage, createPartners } from './shared/partners.js';
import { row, type Section } from './shared/report.js';
import { deafProvider, PRODUCTION, ServiceProcess } from './shared/service-process.js';

const TARGET = 0.5;
/** The service's default. The raw loop uses as many connections as the service and as many callers as the API load. */
const POOL_MAX = 16;
const WALLETS = 1_000;
/** Few enough callers that none waits for another, so their latency is the service's own. */
const FEW_CALLERS = 4;
/** Minor units. No measurement uses it up. */
const BALANCE = 1_000_000_000_000;

/** One database with an API process, and the two loads that run on it. */
interface Shop {
  readonly database: string;
  readonly partners: readonly BenchPartner[];
  readonly captured: readonly string[];
  post(partners: readonly BenchPartner[], connections?: number): Promise<Measurement>;
  repeat(partners: readonly BenchPartner[]): Promise<Measurement>;
}

export async function benchOrders(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const server = cleanups.stopping(await DatabaseServer.start());
  return [await sandbox(server, options, cleanups), await live(server, options, cleanups)];
}

async function sandbox(server: DatabaseServer, options: BenchOptions, cleanups: Cleanups): Promise<Section> {
  const open = (database: string): Promise<Shop> =>
    openShop({ server, database, mode: 'sandbox', count: 1 }, options, cleanups);
  const [alone, worked] = [await open('bench_orders'), await open('bench_worked')];
  const env = { ...PRODUCTION, DATABASE_POOL_MAX: String(POOL_MAX) };
  cleanups.stopping(
    await ServiceProcess.start({ role: 'worker', databaseUrl: server.url(worked.database), env }),
  );
  const results = await interleave(
    options.rounds,
    {
      raw: () => alone.repeat(alone.partners),
      api: () => alone.post(alone.partners),
      withWorker: async () => {
        const measurement = await worked.post(worked.partners);
        await server.drain(worked.database, 'orders');
        return measurement;
      },
    },
    'orders',
  );
  return {
    title: `POST ${ORDERS_PATH}, ${options.connections} connections, a fresh Idempotency-Key each`,
    rows: [
      row('API / raw pg loop', 'x', ratios(results.api, results.raw), { target: TARGET }),
      row('API with a running worker / raw pg loop', 'x', ratios(results.withWorker, results.raw)),
      ...detail('raw pg loop', results.raw),
      ...detail('API', results.api),
      ...detail('API with a running worker', results.withWorker),
      ...disturbance({ raw: results.raw, api: results.api }),
    ],
    notes: rawLoopNotes(alone, options),
  };
}

async function live(server: DatabaseServer, options: BenchOptions, cleanups: Cleanups): Promise<Section> {
  const shop = await openShop(
    { server, database: 'bench_live', mode: 'live', count: WALLETS },
    options,
    cleanups,
  );
  const { partners } = shop;
  const hot = partners.slice(0, 1);
  const results = await interleave(
    options.rounds,
    {
      hotRaw: () => shop.repeat(hot),
      hotApi: () => shop.post(hot),
      manyRaw: () => shop.repeat(partners),
      manyApi: () => shop.post(partners),
      few: () => shop.post(hot, FEW_CALLERS),
    },
    'live orders',
  );
  const orders = await checkBooks(server, shop.database);
  return {
    title: `Live POST ${ORDERS_PATH}, ${options.connections} callers, a fresh Idempotency-Key each`,
    rows: [
      row('one wallet: API / raw pg loop', 'x', ratios(results.hotApi, results.hotRaw), { target: TARGET }),
      row('1,000 wallets: API / raw pg loop', 'x', ratios(results.manyApi, results.manyRaw), {
        target: TARGET,
      }),
      ...detail('one wallet, raw pg loop', results.hotRaw),
      ...detail('one wallet, API', results.hotApi),
      ...detail('1,000 wallets, raw pg loop', results.manyRaw),
      ...detail('1,000 wallets, API', results.manyApi),
      ...detail(`one wallet, API, ${FEW_CALLERS} callers`, results.few).slice(0, 3),
      row('statements per acceptance, including BEGIN and COMMIT', '', [shop.captured.length]),
      ...disturbance(results),
    ],
    notes: [
      `No worker; PostgreSQL is durable. Checked ${orders} orders: each has its hold, and each wallet the sum of its holds.`,
      ...rawLoopNotes(shop, options),
    ],
  };
}

function rawLoopNotes({ captured }: Shop, { connections }: BenchOptions): string[] {
  return [
    `Raw pg loop: the transaction of one POST, taken from the server's log and repeated by ${connections} callers`,
    `on ${POOL_MAX} connections (the API's pool) in a separate process, without key check, rate limit or call log:`,
    ...captured,
  ];
}

async function openShop(
  plan: { server: DatabaseServer; database: string; mode: 'sandbox' | 'live'; count: number },
  options: BenchOptions,
  cleanups: Cleanups,
): Promise<Shop> {
  const { server, database, mode, count } = plan;
  const databaseUrl = await server.createDatabase(database);
  const partners = await createPartners(server, database, count, mode);
  if (mode === 'live') await fillWallets(server, database);
  const env = {
    ...PRODUCTION,
    ...(mode === 'live' ? deafProvider() : {}),
    DATABASE_POOL_MAX: String(POOL_MAX),
  };
  const profile = options.profile ? `api-${database}` : undefined;
  const api = cleanups.stopping(await ServiceProcess.start({ role: 'api', databaseUrl, env, profile }));
  const statements = await captureOrder({ server, database, env, partner: partners[0]! }, cleanups);
  const startLoad = (): Child<LoadApi> =>
    cleanups.stopping(Child.start<LoadApi>(new URL('./shared/load.child.js', import.meta.url)));
  const [generator, raw] = [startLoad(), startLoad()];
  const times = { warmupMs: options.warmupMs, durationMs: options.roundMs };
  return {
    database,
    partners,
    captured: describeCaptured(statements),
    post: (callers, connections = options.connections) => {
      const keys = callers.map(({ key }) => key);
      const calls = { baseUrl: api.apiUrl, path: ORDERS_PATH, keys, body: JSON.stringify(ORDER) };
      return measure({ serverPid: api.pid, databasePid: server.pid }, () =>
        generator.call('calls', { ...calls, ...times, connections, expectedStatus: 202 }),
      );
    },
    repeat: (callers) => {
      const owners = callers.map(({ partnerId, keyId }) => ({ partnerId, keyId }));
      const transactions = { databaseUrl, statements, owners, poolMax: POOL_MAX };
      return measure({ serverPid: raw.pid, databasePid: server.pid }, () =>
        raw.call('transactions', { ...transactions, ...times, concurrency: options.connections }),
      );
    },
  };
}

async function fillWallets(server: DatabaseServer, database: string): Promise<void> {
  await createLivePackage(server, database);
  await server.query(
    `INSERT INTO wallets (partner_id, currency, posted) SELECT id, 'USD', $1::bigint FROM partners`,
    [BALANCE],
    database,
  );
  await server.query('ANALYZE', [], database);
}

/**
 * @returns the number of accepted orders
 * @throws Error when an order does not hold its price, or a wallet's balance differs from the sum of its holds
 */
async function checkBooks(server: DatabaseServer, database: string): Promise<number> {
  const [row] = await server.query<{ orders: number; unpaid: number; wrong: number }>(
    `SELECT (SELECT count(*)::int FROM orders) AS orders,
            (SELECT count(*)::int FROM orders o LEFT JOIN wallet_holds h ON h.order_id = o.id
             WHERE h.status IS DISTINCT FROM 'active' OR h.amount <> o.unit_price_amount * o.quantity) AS unpaid,
            (SELECT count(*)::int FROM wallets w
             WHERE held <> (SELECT coalesce(sum(amount), 0) FROM wallet_holds h
                            WHERE h.wallet_id = w.id AND h.status = 'active')) AS wrong`,
    [],
    database,
  );
  if (!row || row.orders === 0 || row.unpaid > 0 || row.wrong > 0)
    throw new Error(`the holds and wallets of the Live orders disagree: ${JSON.stringify(row)}`);
  return row.orders;
}
