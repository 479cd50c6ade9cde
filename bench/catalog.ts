/**
 * `npm run bench -- catalog`: throughput of GET /v1/catalog on one API process, with one key and with 1,000.
 * Upper bound: a bare Fastify server that serializes the same payload, measured in the same rounds.
 * Read the ratios. The goals are 0.6 with one key and 0.4 with 1,000 keys. The latencies are those of a saturated
 * machine.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchOptions } from './main.js';
import type { BareFastifyApi } from './shared/bare-fastify.child.js';
import { Child, type Cleanups } from './shared/child.js';
import { DatabaseServer } from './shared/database-server.js';
import { sendOk } from './shared/http.js';
import type { LoadApi } from './shared/load.child.js';
import { detail, disturbance, interleave, measure, type Measurement, ratios } from './shared/measurement.js';
import { createPartners } from './shared/partners.js';
import { row, type Section } from './shared/report.js';
import { PRODUCTION, ServiceProcess } from './shared/service-process.js';

const DATABASE = 'bench_catalog';
/** Returns 25 packages, the default page size. */
const PATH = '/v1/catalog';
const MANY_KEYS = 1_000;
/** The API writes its call log within a second. */
const LOG_DELAY_MS = 2_000;

export interface CatalogBed {
  readonly server: DatabaseServer;
  readonly api: ServiceProcess;
  readonly bare: { readonly baseUrl: string; readonly pid: number };
  readonly keys: readonly string[];
  readonly payloadBytes: number;
  /** Runs one round of load. */
  readonly load: (target: 'api' | 'bare', keys: readonly string[], roundMs?: number) => Promise<Measurement>;
  /** Call log rows per API call. */
  readonly loggedShare: () => Promise<number>;
}

export async function benchCatalog(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const { keys, load, payloadBytes, loggedShare } = await prepareCatalog(options, cleanups);
  const results = await interleave(
    options.rounds,
    {
      bare: () => load('bare', keys.slice(0, 1)),
      oneKey: () => load('api', keys.slice(0, 1)),
      manyKeys: () => load('api', keys),
    },
    'catalog',
  );
  return [
    {
      title: `GET ${PATH}, ${options.connections} connections, ${payloadBytes} bytes of JSON`,
      rows: [
        row('one key / bare Fastify', 'x', ratios(results.oneKey, results.bare), { target: 0.6 }),
        row('1,000 keys / bare Fastify', 'x', ratios(results.manyKeys, results.bare), { target: 0.4 }),
        ...detail('bare Fastify', results.bare),
        ...detail('one key', results.oneKey),
        ...detail('1,000 keys', results.manyKeys),
        row('call log rows per call', 'x', [await loggedShare()]),
        ...disturbance(results),
      ],
      notes: [
        'API: every call checks its key and rate limit in PostgreSQL and is logged. PostgreSQL is durable.',
        'Bare Fastify: serializes the same payload for every request, without key check, rate limit or log.',
        'One process each. PostgreSQL and the load generator share the machine.',
      ],
    },
  ];
}

/** Starts and warms up the API and the bare server, and starts the load generator. */
export async function prepareCatalog(options: BenchOptions, cleanups: Cleanups): Promise<CatalogBed> {
  const server = cleanups.stopping(await DatabaseServer.start());
  const databaseUrl = await server.createDatabase(DATABASE);
  const partners = await createPartners(server, DATABASE, MANY_KEYS);
  const keys = partners.map((partner) => partner.key);
  const profile = options.profile ? 'api-catalog' : undefined;
  const api = cleanups.stopping(
    await ServiceProcess.start({ role: 'api', databaseUrl, env: PRODUCTION, profile }),
  );
  const payload = await sendOk<object>(api.apiUrl + PATH, keys[0]!);
  const fastify = cleanups.stopping(
    Child.start<BareFastifyApi>(new URL('./shared/bare-fastify.child.js', import.meta.url)),
  );
  const bare = { baseUrl: await fastify.call('listen', PATH, payload), pid: fastify.pid };
  const generator = cleanups.stopping(
    Child.start<LoadApi>(new URL('./shared/load.child.js', import.meta.url)),
  );
  const { connections, warmupMs } = options;
  let apiCalls = 1;
  const load: CatalogBed['load'] = async (target, loadKeys, durationMs = options.roundMs) => {
    const isApi = target === 'api';
    const watched = { serverPid: isApi ? api.pid : bare.pid, databasePid: isApi ? server.pid : null };
    const plan = { path: PATH, keys: loadKeys, connections, warmupMs, durationMs, expectedStatus: 200 };
    const measurement = await measure(watched, () =>
      generator.call('calls', { ...plan, baseUrl: isApi ? api.apiUrl : bare.baseUrl }),
    );
    if (isApi) apiCalls += measurement.answeredInAll;
    return measurement;
  };
  const loggedShare = async (): Promise<number> => {
    await sleep(LOG_DELAY_MS);
    const [logged] = await server.query<{ rows: number }>(
      'SELECT count(*)::int AS rows FROM api_calls',
      [],
      DATABASE,
    );
    return logged!.rows / apiCalls;
  };
  const payloadBytes = Buffer.byteLength(JSON.stringify(payload));
  return { server, api, bare, keys, payloadBytes, load, loggedShare };
}
