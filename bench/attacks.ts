/**
 * `npm run bench -- attacks`: a healthy partner's p95 during each of twelve attacks, on a filled database (D42, D43).
 * Each attack misuses one part of the service at a rate far below what would saturate a core.
 * Limit: twice the same partner's p95 without the attack (measured before and after it), or two milliseconds more.
 * Read the last column and the healthy partner's errors. There should be none.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AttackerApi, AttackerSettings, AttackReport } from './attacks-attacker.child.js';
import type { HealthyApi, HealthyReport } from './attacks-healthy.child.js';
import { fillDatabase } from './growth-fill.js';
import { BIG_PARTNER, ownedId } from './growth-tables.js';
import type { BenchOptions } from './main.js';
import { Child, type Cleanups } from './shared/child.js';
import { DatabaseServer } from './shared/database-server.js';
import { createEndpoint, createKeys, createPartners } from './shared/partners.js';
import { ascending, format, quantile, say, type Section } from './shared/report.js';
import { startRoles } from './shared/service-process.js';

const DATABASE = 'bench_attacks';
const HANGING_PARTNERS = 7;
const HANGING_ENDPOINTS_OF_EACH = 20;
const COSTLY_ENDPOINTS = 10;
const LIVE_PARTNERS = 250;
/** Each attack runs this long before the healthy partner is measured. */
const LEAD_MS = 4_000;
const MAX_RATIO = 2;
/** A single sample can move a p95 by this much. */
const NOISE_MS = 2;

/** Calls per second. Hanging endpoints come last because they hold their slots for a minute. */
const ATTACKS = {
  /** Anonymous calls through a proxy from addresses such as fe80::1%eth0. */
  'addresses with a zone': 60,
  /** Ten endpoints that require an 8,192-bit Diffie-Hellman group before they send a certificate. */
  'costly TLS': 10,
  /** Filtered lists of the partner that owns a third of all orders. */
  'list flood': 30,
  /** 60 connections that each request 200 catalog pages and read no response. */
  'callers that never read': 4,
  /** QR codes that the service has not rendered yet. */
  'QR burst': 20,
  /** Catalog pages with arbitrary filter values, which would each need a cache entry. */
  'catalog cache': 30,
  /** The catalogs of 250 live partners in turn: more than the cache holds. */
  'catalogs of many': 50,
  /** Sandbox orders by one partner. */
  'sandbox flood': 20,
  /** Repeated reads of the whole event feed, filtered by a rare type. */
  'feed by a rare type': 30,
  /** `/metrics` of the API and the worker. */
  'metrics scraping': 5,
  /** Calls with a valid key from an address that the key does not allow. */
  'refused calls': 60,
  /**
   * 7 partners with 20 endpoints each that accept connections and never respond. Together they could occupy every slot.
   */
  'hanging endpoints': 7,
} as const;
export type AttackName = keyof typeof ATTACKS;

const HEALTHY_CALLS = ['GET /v1/me', 'POST /v1/orders', 'GET /v1/orders', 'order to webhook'] as const;
export type HealthyCall = (typeof HEALTHY_CALLS)[number];

interface Round {
  readonly attack: AttackName;
  readonly alone: HealthyReport;
  readonly beside: HealthyReport;
  readonly attacker: AttackReport;
}

interface Bed {
  readonly attacker: Child<AttackerApi>;
  readonly settings: AttackerSettings;
  healthy(durationMs: number): Promise<HealthyReport>;
  /** Removes what the attack left behind and waits until the worker is idle. */
  settle(): Promise<void>;
}

export async function benchAttacks(
  { quick, growth }: BenchOptions,
  cleanups: Cleanups,
): Promise<readonly Section[]> {
  const { orders, deliveries, minFreeGb } = growth;
  const server = cleanups.stopping(await DatabaseServer.start());
  await fillDatabase(server, { database: DATABASE, orders, deliveries }, minFreeGb);
  const bed = await openBed(server, cleanups);
  const measureMs = quick ? 6_000 : 30_000;
  await bed.healthy(measureMs / 2);
  const rounds: Round[] = [];
  for (const attack of Object.keys(ATTACKS) as AttackName[]) {
    const before = await bed.healthy(measureMs);
    await bed.attacker.call('begin', attack, ATTACKS[attack], bed.settings);
    await sleep(LEAD_MS);
    const beside = await bed.healthy(measureMs);
    const attacker = await bed.attacker.call('end');
    await bed.settle();
    const round = { attack, alone: together(before, await bed.healthy(measureMs)), beside, attacker };
    rounds.push(round);
    say(`${attack}: ${describe(round)}`);
  }
  return [sectionOf(rounds, orders, deliveries)];
}

function together(one: HealthyReport, other: HealthyReport): HealthyReport {
  const both = (call: HealthyCall): number[] => ascending([...one.latencies[call], ...other.latencies[call]]);
  const errors: Record<string, number> = { ...one.errors };
  for (const [name, count] of Object.entries(other.errors)) errors[name] = (errors[name] ?? 0) + count;
  return { latencies: Object.fromEntries(HEALTHY_CALLS.map((call) => [call, both(call)])) as never, errors };
}

function sectionOf(rounds: readonly Round[], orders: number, deliveries: number): Section {
  const lines = rounds.flatMap((round) =>
    HEALTHY_CALLS.map((call) => {
      const alone = quantile(round.alone.latencies[call], 0.95);
      const beside = quantile(round.beside.latencies[call], 0.95);
      const isSlower = beside / alone > MAX_RATIO && beside - alone > NOISE_MS;
      const samples = String(round.beside.latencies[call].length);
      const figures = [format(alone), format(beside), (beside / alone).toFixed(2), samples];
      return { cells: [`${round.attack}: ${call}`, ...figures, isSlower ? `> ${MAX_RATIO}` : ''], isSlower };
    }),
  );
  const slower = lines.filter(({ isSlower }) => isSlower).length;
  return {
    title: `Attacks: a healthy partner without and with each attack, ${orders.toLocaleString('en')} orders and ${deliveries.toLocaleString('en')} deliveries in the tables`,
    rows: [],
    table: [
      ['attack: call of the healthy partner', 'p95 without', 'p95 with (ms)', 'ratio', 'samples', ''],
      ...lines.map(({ cells }) => cells),
    ],
    notes: [
      `${lines.length - slower} of ${lines.length} are within ${MAX_RATIO} times (or ${NOISE_MS} ms), ${slower} are slower.`,
      ...rounds.map((round) => `${round.attack}, ${ATTACKS[round.attack]}/s: ${describe(round)}`),
      'Without: measured before and after the attack. The ratios are only valid if nothing else runs on the machine.',
      'Attacker and healthy partner run in separate processes. "order to webhook" includes provisioning.',
    ],
  };
}

function describe({ attacker, alone, beside }: Round): string {
  return (
    `the attacker used ${attacker.cpu.toFixed(2)} cores and got ${JSON.stringify(attacker.answers)}; ` +
    `errors of the healthy partner: ${JSON.stringify(beside.errors)} (without: ${JSON.stringify(alone.errors)})`
  );
}

/** Starts one process per role behind one simulated proxy, a healthy partner, and an attacker with its own partners. */
async function openBed(server: DatabaseServer, cleanups: Cleanups): Promise<Bed> {
  const query = (sql: string, values: unknown[] = []) => server.query(sql, values, DATABASE);
  // The filled endpoints have no receiver, and the filled open orders belong to no attack.
  await query(
    `DELETE FROM webhook_deliveries WHERE status = 'pending';
     UPDATE webhook_endpoints SET enabled = false;
     DELETE FROM orders WHERE next_attempt_at IS NOT NULL`,
  );
  const partners = await createPartners(server, DATABASE, 4 + HANGING_PARTNERS);
  const [good, bad, refused, costly, ...hanging] = partners;
  const many = await createPartners(server, DATABASE, LIVE_PARTNERS, 'live');
  const [big] = await createKeys(server, DATABASE, [ownedId('ptn', BIG_PARTNER, 0)], 'live');
  await query(`UPDATE api_keys SET allowed_cidrs = '{203.0.113.0/24}' WHERE id = $1`, [refused!.keyId]);
  // Keep retention from purging the filled rows during the run.
  const env = { TRUST_PROXY: '1', SANDBOX_ORDER_RETENTION_DAYS: '3650' };
  const options = { databaseUrl: server.url(DATABASE), env };
  const { api, admin, worker } = await startRoles(['api', 'admin', 'worker'], options, cleanups);
  const healthy = cleanups.stopping(
    Child.start<HealthyApi>(new URL('./attacks-healthy.child.js', import.meta.url)),
  );
  const attacker = cleanups.stopping(
    Child.start<AttackerApi>(new URL('./attacks-attacker.child.js', import.meta.url)),
  );
  const { hangingUrl, costlyUrl } = await attacker.call('listen');
  const register = async (partnerId: string, url: string, count: number): Promise<void> => {
    for (let nth = 0; nth < count; nth++) await createEndpoint(admin, partnerId, `${url}/${nth}`);
  };
  await register(good!.partnerId, await healthy.call('listen'), 1);
  await register(costly!.partnerId, costlyUrl, COSTLY_ENDPOINTS);
  for (const { partnerId } of hanging) await register(partnerId, hangingUrl, HANGING_ENDPOINTS_OF_EACH);
  return {
    attacker,
    settings: {
      apiUrl: api.apiUrl,
      metricsUrls: [api.opsUrl, worker.opsUrl],
      key: bad!.key,
      bigKey: big!.key,
      manyKeys: many.map(({ key }) => key),
      hangingKeys: hanging.map(({ key }) => key),
      costlyKey: costly!.key,
      refusedKey: refused!.key,
    },
    healthy: (durationMs) => healthy.call('measure', api.apiUrl, good!.key, durationMs),
    settle: async () => {
      await query(
        `DELETE FROM webhook_deliveries WHERE status = 'pending' AND started_at IS NULL
           AND endpoint_id IN (SELECT id FROM webhook_endpoints WHERE url LIKE '${new URL(hangingUrl).origin}/%'
                                 OR url LIKE '${new URL(costlyUrl).origin}/%')`,
      );
      await server.drain(DATABASE, 'orders');
    },
  };
}
