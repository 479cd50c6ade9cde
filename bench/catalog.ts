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
import { cpuSecondsOf } from './shared/machine.js';
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
  readonly load: (
    target: 'api' | 'bare',
    keys: readonly string[],
    roundMs?: number,
    path?: string,
  ) => Promise<Measurement>;
  /** Call log rows per API call. */
  readonly loggedShare: () => Promise<number>;
}

export async function benchCatalog(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const bed = await prepareCatalog(options, cleanups);
  const { keys, load, payloadBytes, loggedShare } = bed;
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
    await benchLargeCatalog(options, bed),
  ];
}

/** Fills Live with packages of both wholesalers, and compares the other calls of the catalog with a plain list. */
async function benchLargeCatalog(options: BenchOptions, { server, api, load }: CatalogBed): Promise<Section> {
  const count = await fillLiveCatalog(server);
  const [partner] = await createPartners(server, DATABASE, 1, 'live');
  const { key } = partner!;
  const builds = [];
  for (let round = 0; round <= options.rounds; round++) {
    await server.query(`UPDATE catalog_versions SET version = version + 1 WHERE mode = 'live'`, [], DATABASE);
    await sleep(CHECK_DELAY_MS);
    const before = cpuSecondsOf(api.pid);
    await sendOk(`${api.apiUrl}/v1/catalog`, key);
    const after = cpuSecondsOf(api.pid);
    // In the first round the code is not compiled yet.
    if (round > 0) builds.push(before === null || after === null ? null : after - before);
  }
  const list = (path: string) => () => load('api', [key], options.roundMs / 2, path);
  const results = await interleave(
    options.rounds,
    {
      plain: list('/v1/catalog?country=JP&limit=100'),
      shelf: list('/v1/catalog?country=JP&shelf=true'),
      destinations: list('/v1/destinations'),
      computedPlain: list(`/v1/catalog?country=JP&kind=base&limit=100&${NOT_CACHED}`),
      computedShelf: list(`/v1/catalog?country=JP&shelf=true&${NOT_CACHED}`),
    },
    'large catalog',
  );
  return {
    title: `Live catalog of ${count} packages, ${options.connections} connections`,
    rows: [
      row('catalog built: CPU of the API', 's', builds, { limit: 2 }),
      row('time of a shelf / plain list', 'x', ratios(results.plain, results.shelf), { limit: 3 }),
      row(
        'time of a shelf / plain list, computed for each call',
        'x',
        ratios(results.computedPlain, results.computedShelf),
        {
          limit: 3,
        },
      ),
      row('time of the destinations / plain list', 'x', ratios(results.plain, results.destinations)),
      ...detail('plain list', results.plain),
      ...detail('shelf', results.shelf),
      ...detail('destinations', results.destinations),
      ...detail('plain list, computed', results.computedPlain),
      ...detail('shelf, computed', results.computedShelf),
    ],
    notes: [
      'The plain list has 100 packages. The shelf has every package of Japan that no other one dominates.',
      'Lists are cached until the catalog changes. A free-form filter prevents that, so each call computes its list.',
    ],
  };
}

/** Longer than the API uses a catalog without checking its version. */
const CHECK_DELAY_MS = 1_100;
const NOT_CACHED = 'max_price_amount=1000000000';

/** 2,590 packages of one wholesaler and 4,510 of the other, as variants of the Sandbox packages. */
async function fillLiveCatalog(server: DatabaseServer): Promise<number> {
  const [{ count }] = (await server.query<{ count: number }>(
    `WITH samples AS (SELECT p.*, row_number() OVER (ORDER BY id) - 1 AS nth, count(*) OVER () AS total
                      FROM packages p WHERE mode = 'sandbox'),
     filled AS (
       INSERT INTO packages SELECT (jsonb_populate_record(null::packages, to_jsonb(s) || jsonb_build_object(
           'mode', 'live', 'id', 'pkg_' || CASE WHEN n <= 2590 THEN 'a_' ELSE 'z_' END || n,
           'cost_micros', s.price_amount * 8000 + n * 7 % 900 * 1000, 'price_amount', s.price_amount + n * 7 % 900 / 10))).*
       FROM generate_series(1, 7100) AS n JOIN samples s ON s.nth = n % s.total
       RETURNING 1)
     SELECT count(*)::int AS count FROM filled`,
    [],
    DATABASE,
  )) as [{ count: number }];
  return count;
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
  const load: CatalogBed['load'] = async (target, loadKeys, durationMs = options.roundMs, path = PATH) => {
    const isApi = target === 'api';
    const watched = { serverPid: isApi ? api.pid : bare.pid, databasePid: isApi ? server.pid : null };
    const plan = { path, keys: loadKeys, connections, warmupMs, durationMs, expectedStatus: 200 };
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
