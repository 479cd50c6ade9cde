import type { Cleanups } from './cleanups.js';
import { benchDelivery } from './delivery.js';
import { captureOrder, describeCaptured, ORDERS_PATH } from './limits/captured-order.js';
import { RawTransactions, type RawStatement } from './limits/raw-transactions.js';
import { LoadGenerator } from './load/load-generator.js';
import { interleave, measure, type Measurement, ratios } from './measurement.js';
import type { BenchOptions } from './options.js';
import { detail, disturbance } from './report/detail.js';
import { row, type Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';
import { type BenchPartner, createPartners } from './service/partners.js';
import { ServiceProcess } from './service/service-process.js';
import { WorkedQueue } from './service/worked-queue.js';

const TARGET = 0.5;
const BODY = JSON.stringify({ package_id: 'pkg_fr_1gb_7d', quantity: 1 });
/** The service's default; the raw loop has as many connections and as many callers as the API. */
const POOL_MAX = 16;

interface Bed {
  readonly server: DatabaseServer;
  readonly database: string;
  readonly databaseUrl: string;
  readonly partner: BenchPartner;
  readonly api: ServiceProcess;
}

export async function benchOrders(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const server = cleanups.stopping(await DatabaseServer.start());
  const alone = await prepare(server, 'bench_orders', options, cleanups);
  const statements = await captureOrder({ ...alone, env: PRODUCTION, body: BODY }, cleanups);
  const worked = await prepare(server, 'bench_worked', options, cleanups);
  const queue = new WorkedQueue(server, worked.database);
  cleanups.stopping(
    await ServiceProcess.start({ role: 'worker', databaseUrl: worked.databaseUrl, env: PRODUCTION }),
  );
  const generator = cleanups.stopping(new LoadGenerator());
  const raw = cleanups.stopping(new RawTransactions());
  const issuedPerSecond: number[] = [];
  const results = await interleave(
    options.rounds,
    {
      raw: () => repeat(raw, alone, statements, options),
      api: () => post(generator, alone, options),
      withWorker: async () => {
        const measurement = await post(generator, worked, options);
        issuedPerSecond.push(await queue.drain());
        return measurement;
      },
    },
    'orders',
  );
  const acceptance: Section = {
    title: `POST ${ORDERS_PATH}, ${options.connections} connections, a fresh Idempotency-Key each`,
    rows: [
      row('API / raw pg loop', 'x', ratios(results.api, results.raw), TARGET),
      row('API with a worker at work / raw pg loop', 'x', ratios(results.withWorker, results.raw)),
      ...detail('raw pg loop', results.raw),
      ...detail('API', results.api),
      ...detail('API with a worker at work', results.withWorker),
      row(
        'one worker, one partner: orders issued after the load',
        '/s',
        issuedPerSecond.slice(-options.rounds),
      ),
      ...disturbance({ raw: results.raw, api: results.api }),
    ],
    notes: [
      `Raw pg loop: the transaction of one POST, read from the server's log, repeated by ${options.connections} callers`,
      `on ${POOL_MAX} connections (the API's pool) in a process of its own; without key check, limit and call log:`,
      ...describeCaptured(statements),
    ],
  };
  return [acceptance, await benchDelivery(server, options, cleanups)];
}

const PRODUCTION = { NODE_ENV: 'production', DATABASE_POOL_MAX: String(POOL_MAX) };

async function prepare(
  server: DatabaseServer,
  database: string,
  options: BenchOptions,
  cleanups: Cleanups,
): Promise<Bed> {
  const databaseUrl = await server.createDatabase(database);
  const [partner] = await createPartners(server, database, 1);
  const profile = options.profile ? `api-${database}` : undefined;
  const api = await ServiceProcess.start({ role: 'api', databaseUrl, env: PRODUCTION, profile });
  return { server, database, databaseUrl, partner: partner!, api: cleanups.stopping(api) };
}

function post(generator: LoadGenerator, bed: Bed, options: BenchOptions): Promise<Measurement> {
  const { connections, warmupMs, roundMs } = options;
  const plan = { baseUrl: bed.api.apiUrl, path: ORDERS_PATH, keys: [bed.partner.key], body: BODY };
  return measure({ serverPid: bed.api.pid, databasePid: bed.server.pid }, () =>
    generator.run({ ...plan, connections, warmupMs, durationMs: roundMs }, 202),
  );
}

function repeat(
  raw: RawTransactions,
  { databaseUrl, partner, server }: Bed,
  statements: readonly RawStatement[],
  { connections, warmupMs, roundMs }: BenchOptions,
): Promise<Measurement> {
  return measure({ serverPid: raw.pid, databasePid: server.pid }, () =>
    raw.run({
      databaseUrl,
      statements,
      owners: [partner],
      poolMax: POOL_MAX,
      concurrency: connections,
      warmupMs,
      durationMs: roundMs,
    }),
  );
}
