import type { Cleanups } from '../cleanups.js';
import { captureOrder, describeCaptured, ORDERS_PATH } from '../limits/captured-order.js';
import { type RawStatement, RawTransactions } from '../limits/raw-transactions.js';
import { LoadGenerator } from '../load/load-generator.js';
import { interleave, measure, type Measurement, ratios } from '../measurement.js';
import type { BenchOptions } from '../options.js';
import { detail, disturbance } from '../report/detail.js';
import { row, type Row, type Section } from '../report/report.js';
import type { DatabaseServer } from '../service/database-server.js';
import type { BenchPartner } from '../service/partners.js';
import { LiveShop, ORDER_BODY, POOL_MAX } from './live-shop.js';

const TARGET = 0.5;
const MANY = 1_000;
/** Callers that leave the machine some air: what one of them waits is the service's work and no queue. */
const FEW_CALLERS = 4;

/** Live orders accepted over HTTP by one API process, against their own SQL: on one wallet and on many. */
export async function benchAcceptance(
  server: DatabaseServer,
  options: BenchOptions,
  cleanups: Cleanups,
): Promise<Section> {
  const shop = await LiveShop.open(server, MANY, options, cleanups);
  const [hot] = shop.partners;
  const statements = await captureOrder({ ...captureOf(shop), partner: hot! }, cleanups);
  const load = new AcceptanceLoad(shop, statements, options, cleanups);
  const results = await interleave(
    options.rounds,
    {
      hotRaw: () => load.repeat([hot!]),
      hotApi: () => load.post([hot!]),
      manyRaw: () => load.repeat(shop.partners),
      manyApi: () => load.post(shop.partners),
      few: () => load.post([hot!], FEW_CALLERS),
    },
    'live orders',
  );
  const orders = await shop.checkBooks();
  return {
    title: `Live POST ${ORDERS_PATH}, ${options.connections} callers, a fresh Idempotency-Key each`,
    rows: [
      row('one wallet: API / raw pg loop', 'x', ratios(results.hotApi, results.hotRaw), TARGET),
      row('1,000 wallets: API / raw pg loop', 'x', ratios(results.manyApi, results.manyRaw), TARGET),
      ...detail('one wallet, raw pg loop', results.hotRaw),
      ...detail('one wallet, API', results.hotApi),
      ...detail('1,000 wallets, raw pg loop', results.manyRaw),
      ...detail('1,000 wallets, API', results.manyApi),
      ...latency(`one wallet, API, ${FEW_CALLERS} callers`, results.few),
      row('statements of one acceptance, BEGIN and COMMIT included', '', [statements.length]),
      ...disturbance(results),
    ],
    notes: [
      `No worker, PostgreSQL durable. ${orders} orders in all, each with its hold, each wallet the sum of its holds.`,
      `Raw pg loop: the transaction of one POST, read from the server's log, repeated by ${options.connections} callers`,
      `on ${POOL_MAX} connections (the API's pool) in a process of its own, on the same wallets as the API and with the`,
      'same waits for their rows; without key check, limit and call log:',
      ...describeCaptured(statements),
    ],
  };
}

/** One round of either side, on the wallets of `partners` in turn. */
class AcceptanceLoad {
  private readonly generator: LoadGenerator;
  private readonly raw: RawTransactions;

  constructor(
    private readonly shop: LiveShop,
    private readonly statements: readonly RawStatement[],
    private readonly options: BenchOptions,
    cleanups: Cleanups,
  ) {
    this.generator = cleanups.stopping(new LoadGenerator());
    this.raw = cleanups.stopping(new RawTransactions());
  }

  post(
    partners: readonly BenchPartner[],
    connections: number = this.options.connections,
  ): Promise<Measurement> {
    const { api, server } = this.shop;
    const keys = partners.map((partner) => partner.key);
    const plan = { baseUrl: api.apiUrl, path: ORDERS_PATH, keys, body: ORDER_BODY, connections };
    return measure({ serverPid: api.pid, databasePid: server.pid }, () =>
      this.generator.run({ ...plan, ...this.times() }, 202),
    );
  }

  repeat(partners: readonly BenchPartner[]): Promise<Measurement> {
    const { databaseUrl, server } = this.shop;
    const owners = partners.map(({ partnerId, keyId }) => ({ partnerId, keyId }));
    const plan = { databaseUrl, statements: this.statements, owners, poolMax: POOL_MAX };
    return measure({ serverPid: this.raw.pid, databasePid: server.pid }, () =>
      this.raw.run({ ...plan, concurrency: this.options.connections, ...this.times() }),
    );
  }

  private times(): { warmupMs: number; durationMs: number } {
    return { warmupMs: this.options.warmupMs, durationMs: this.options.roundMs };
  }
}

function captureOf({ server, database, databaseUrl, env }: LiveShop) {
  return { server, database, databaseUrl, env, body: ORDER_BODY };
}

function latency(name: string, rounds: readonly Measurement[]): Row[] {
  return [
    row(
      `${name}: calls`,
      '/s',
      rounds.map((one) => one.perSecond),
    ),
    row(
      `${name}: latency p50`,
      'ms',
      rounds.map((one) => one.p50Ms),
    ),
    row(
      `${name}: latency p99`,
      'ms',
      rounds.map((one) => one.p99Ms),
    ),
  ];
}
