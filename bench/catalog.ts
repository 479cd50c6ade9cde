import { setTimeout as sleep } from 'node:timers/promises';
import { ChildLink } from './child-link.js';
import type { Cleanups } from './cleanups.js';
import { LoadGenerator } from './load/load-generator.js';
import { interleave, measure, type Measurement, ratios } from './measurement.js';
import type { BenchOptions } from './options.js';
import { detail, disturbance } from './report/detail.js';
import { row, type Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';
import { createPartners } from './service/partners.js';
import { ServiceProcess } from './service/service-process.js';

const DATABASE = 'bench_catalog';
/** 25 packages, the default page. */
const PATH = '/v1/catalog';
const MANY_KEYS = 1_000;
/** Rows are visible within a second. */
const LOG_DELAY_MS = 2_000;
const TARGET_ONE_KEY = 0.6;
const TARGET_MANY_KEYS = 0.4;

export interface CatalogBed {
  readonly server: DatabaseServer;
  readonly api: ServiceProcess;
  readonly bare: { readonly baseUrl: string; readonly pid: number };
  readonly keys: readonly string[];
  readonly generator: LoadGenerator;
  readonly payloadBytes: number;
  /** Calls that the API has answered. */
  apiCalls: number;
}

export async function benchCatalog(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const bed = await prepareCatalog(options, cleanups);
  const results = await interleave(
    options.rounds,
    {
      bare: () => load(bed, options, 'bare', bed.keys.slice(0, 1)),
      oneKey: () => load(bed, options, 'api', bed.keys.slice(0, 1)),
      manyKeys: () => load(bed, options, 'api', bed.keys),
    },
    'catalog',
  );
  return [
    {
      title: `GET ${PATH}, ${options.connections} connections, ${bed.payloadBytes} bytes of JSON`,
      rows: [
        row('one key / bare Fastify', 'x', ratios(results.oneKey, results.bare), TARGET_ONE_KEY),
        row('1,000 keys / bare Fastify', 'x', ratios(results.manyKeys, results.bare), TARGET_MANY_KEYS),
        ...detail('bare Fastify', results.bare),
        ...detail('one key', results.oneKey),
        ...detail('1,000 keys', results.manyKeys),
        row('call log rows per call', 'x', [await loggedShare(bed)]),
        ...disturbance(results),
      ],
      notes: [
        'API: key check and rate limit in PostgreSQL for every call, call log rows and lines on, PostgreSQL durable.',
        'Bare Fastify: the same payload object, serialized for every request; no key, no limit, no log.',
        'One process each; PostgreSQL and the load generator share the machine with both.',
      ],
    },
  ];
}

/** The two servers, warm, and the generator. */
export async function prepareCatalog(options: BenchOptions, cleanups: Cleanups): Promise<CatalogBed> {
  const server = cleanups.stopping(await DatabaseServer.start());
  const databaseUrl = await server.createDatabase(DATABASE);
  const partners = await createPartners(server, DATABASE, MANY_KEYS);
  const keys = partners.map((partner) => partner.key);
  const api = cleanups.stopping(
    await ServiceProcess.start({
      role: 'api',
      databaseUrl,
      env: { NODE_ENV: 'production' },
      profile: options.profile ? 'api-catalog' : undefined,
    }),
  );
  const answer = await fetch(api.apiUrl + PATH, { headers: { authorization: `Bearer ${keys[0]}` } });
  if (answer.status !== 200) throw new Error(`GET ${PATH}: ${answer.status} ${await answer.text()}`);
  const payload = (await answer.json()) as object;
  const link = cleanups.stopping(
    ChildLink.start<object, { baseUrl: string }>(new URL('./limits/bare-fastify.child.js', import.meta.url)),
  );
  const { baseUrl } = await link.ask({ path: PATH, payload });
  return {
    server,
    api,
    bare: { baseUrl, pid: link.pid },
    keys,
    generator: cleanups.stopping(new LoadGenerator()),
    payloadBytes: Buffer.byteLength(JSON.stringify(payload)),
    apiCalls: 1,
  };
}

/** One round of load on one of the two servers. */
export async function load(
  bed: CatalogBed,
  { connections, warmupMs, roundMs }: BenchOptions,
  target: 'api' | 'bare',
  keys: readonly string[],
): Promise<Measurement> {
  const { api, bare, server, generator } = bed;
  const isApi = target === 'api';
  const baseUrl = isApi ? api.apiUrl : bare.baseUrl;
  const watched = { serverPid: isApi ? api.pid : bare.pid, databasePid: isApi ? server.pid : null };
  const measurement = await measure(watched, () =>
    generator.run({ baseUrl, path: PATH, keys, connections, warmupMs, durationMs: roundMs }, 200),
  );
  if (isApi) bed.apiCalls += measurement.answeredInAll;
  return measurement;
}

/** A throughput with half a call log would be no throughput (D38). */
async function loggedShare({ server, apiCalls }: CatalogBed): Promise<number> {
  await sleep(LOG_DELAY_MS);
  const sql = 'SELECT count(*)::int AS rows FROM api_calls';
  const [logged] = await server.query<{ rows: number }>(sql, [], DATABASE);
  return (logged?.rows ?? 0) / apiCalls;
}
