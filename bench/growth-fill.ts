import { Client } from 'pg';
import type { Mode } from '../src/common/mode.js';
import { dayOf } from '../src/infra/partition-days.js';
import {
  attemptsOf,
  callsOf,
  CREATE_FILL,
  type DayTable,
  deliveriesOf,
  ENDPOINTS,
  eventsOf,
  type Numbers,
  orderStatements,
  ownerStatements,
  restStatements,
} from './growth-tables.js';
import type { DatabaseServer } from './shared/database-server.js';
import { createLivePackage } from './shared/partners.js';
import { say } from './shared/report.js';

/** Days of orders: more than the Sandbox retention, so that the purge finds rows. */
const ORDER_DAYS = 95;
/** Default retention in days, not counting today. */
const EVENT_DAYS: Readonly<Record<Mode, number>> = { live: 90, sandbox: 30 };
const EVENT_SHARE: Readonly<Record<Mode, number>> = { live: 0.85, sandbox: 0.15 };
const ATTEMPT_DAYS = 30;
const CALL_DAYS = 5;
const CALLS_PER_ORDER = 3;
const DAY_MS = 86_400_000;
const GB = 1e9;

export interface GrowthScale {
  readonly database: string;
  readonly orders: number;
  readonly deliveries: number;
}

/** Each step is one transaction. After an interruption, the fill repeats the step that was running. */
interface FillStep {
  readonly name: string;
  readonly statements: readonly (string | DayTable)[];
}

/**
 * Fills a database, oldest day first, or resumes an interrupted fill. Stops when less than `minFreeGb` of disk space is
 * free.
 * @returns lines that describe the database's size, and the step where filling stopped early
 * @throws Error when an earlier run filled the database for other sizes
 */
export async function fillDatabase(
  server: DatabaseServer,
  scale: GrowthScale,
  minFreeGb: number,
): Promise<readonly string[]> {
  const { database } = scale;
  await server.createDatabase(database);
  const client = new Client({ connectionString: server.url(database) });
  // Ignore the error of a query that an interrupted bench cancels.
  client.on('error', () => undefined);
  await client.connect();
  try {
    // Skip triggers and foreign keys.
    await client.query(
      `SET session_replication_role = 'replica'; SET synchronous_commit = 'off'; SET maintenance_work_mem = '512MB'`,
    );
    await client.query(CREATE_FILL);
    const steps = fillSteps(scale, await anchorOf(client, scale));
    const { rows: done } = await client.query<{ name: string }>('SELECT name FROM growth.steps');
    const left = steps.filter(({ name }) => !done.some((one) => one.name === name));
    const notes: string[] = [];
    for (const [nth, step] of left.entries()) {
      if (server.freeBytes() < minFreeGb * GB) {
        notes.push(
          `${database}: filling stopped before "${step.name}": ${gigabytes(server.freeBytes())} free`,
        );
        break;
      }
      if (step.name === 'owners') await createLivePackage(server, database);
      const rows = await runStep(client, step);
      say(
        `${database}: ${step.name}, ${nth + 1}/${left.length}, ${rows} rows, ${gigabytes(server.freeBytes())} free`,
      );
    }
    if (left.length > 0) await server.settle(database);
    return [...notes, ...(await describeSizes(client, database))];
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** @returns the end of the filled period, stored by the first run so that a resumed fill writes the same rows */
async function anchorOf(client: Client, { database, orders, deliveries }: GrowthScale): Promise<Date> {
  await client.query(
    'INSERT INTO growth.scale SELECT $1, $2, now() WHERE NOT EXISTS (SELECT 1 FROM growth.scale)',
    [orders, deliveries],
  );
  const { rows } = await client.query<{ orders: string; deliveries: string; anchor: Date }>(
    'SELECT * FROM growth.scale',
  );
  const kept = rows[0]!;
  if (Number(kept.orders) !== orders || Number(kept.deliveries) !== deliveries)
    throw new Error(
      `${database} was filled for ${kept.orders} orders and ${kept.deliveries} deliveries. Pass these sizes or another --data folder.`,
    );
  return kept.anchor;
}

function fillSteps({ orders, deliveries }: GrowthScale, anchor: Date): readonly FillStep[] {
  const perDay = Math.max(1, Math.floor(orders / ORDER_DAYS));
  const eventsPerDay = (mode: Mode): number =>
    Math.max(1, Math.floor((deliveries * EVENT_SHARE[mode]) / (EVENT_DAYS[mode] + 1) / ENDPOINTS));
  const numbersOf = (age: number, count: number): Numbers => {
    const fromMs = dayOf(anchor, -age).getTime();
    const toMs = Math.min(fromMs + DAY_MS, anchor.getTime());
    return { first: (ORDER_DAYS - 1 - age) * count + 1, count, fromMs, toMs };
  };
  // Live and Sandbox events use separate number ranges, so no id occurs twice.
  const eventNumbers = (mode: Mode, age: number): Numbers => {
    const numbers = numbersOf(age, eventsPerDay(mode));
    return mode === 'live' ? numbers : { ...numbers, first: numbers.first + deliveries };
  };
  const position = (mode: Mode, age: number): number => {
    const before = (ORDER_DAYS - 1 - age) * (eventsPerDay('live') + eventsPerDay('sandbox'));
    return before + (mode === 'live' ? 0 : eventsPerDay('live')) + 1;
  };
  const stepOf = (age: number): FillStep => {
    const modes = (['live', 'sandbox'] as const).filter((mode) => age <= EVENT_DAYS[mode]);
    const attempted = modes.map((mode) => [mode, eventNumbers(mode, age)] as const);
    return {
      name: `day ${age}`,
      statements: [
        ...orderStatements(numbersOf(age, perDay)),
        ...modes.map((mode) => eventsOf(mode, eventNumbers(mode, age), position(mode, age))),
        ...modes.map((mode) => deliveriesOf(mode, eventNumbers(mode, age))),
        ...(age <= ATTEMPT_DAYS ? [attemptsOf(attempted)] : []),
        ...(age < CALL_DAYS ? [callsOf(numbersOf(age, perDay * CALLS_PER_ORDER))] : []),
      ],
    };
  };
  return [
    { name: 'owners', statements: ownerStatements() },
    ...Array.from({ length: ORDER_DAYS }, (_, nth) => stepOf(ORDER_DAYS - 1 - nth)),
    { name: 'rest', statements: restStatements(orders) },
  ];
}

/**
 * @returns the number of rows
 * @throws Error that names the failed step
 */
async function runStep(client: Client, { name, statements }: FillStep): Promise<number> {
  await client.query('BEGIN');
  try {
    let rows = 0;
    for (const statement of statements)
      rows +=
        typeof statement === 'string'
          ? ((await client.query(statement)).rowCount ?? 0)
          : await fillDay(client, statement);
    await client.query('INSERT INTO growth.steps (name, rows) VALUES ($1, $2)', [name, rows]);
    await client.query('COMMIT');
    return rows;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
  }
}

/** If the service has already created the day's partition, fills it in place. */
async function fillDay(client: Client, { table, partition, bounds, insert }: DayTable): Promise<number> {
  const { rows } = await client.query<{ known: string | null }>('SELECT to_regclass($1) AS known', [
    partition,
  ]);
  const isKnown = rows[0]!.known !== null;
  if (!isKnown)
    await client.query(`CREATE TABLE ${partition} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
  const count = (await client.query(insert)).rowCount ?? 0;
  if (!isKnown) await client.query(`ALTER TABLE ${table} ATTACH PARTITION ${partition} FOR VALUES ${bounds}`);
  return count;
}

async function describeSizes(client: Client, database: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string; rows: string; bytes: string }>(
    `SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass::text AS name, sum(c.reltuples)::bigint AS rows,
            sum(pg_total_relation_size(c.oid))::bigint AS bytes
     FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
     GROUP BY 1 HAVING sum(c.reltuples) > 10000 ORDER BY bytes DESC`,
  );
  const size = await client.query<{ bytes: string }>('SELECT pg_database_size(current_database()) AS bytes');
  return [
    `${database}: ${gigabytes(Number(size.rows[0]!.bytes))}`,
    ...rows.map(
      (one) =>
        `  ${one.name}: ${Number(one.rows).toLocaleString('en')} rows, ${gigabytes(Number(one.bytes))}, ` +
        `${Math.round(Number(one.bytes) / Number(one.rows))} bytes a row including indexes`,
    ),
  ];
}

function gigabytes(bytes: number): string {
  return `${(bytes / GB).toFixed(2)} GB`;
}
