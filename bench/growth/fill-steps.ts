import type { Client } from 'pg';
import { attemptsOf, callsOf, type DayStatement, deliveriesOf, eventsOf } from './fill-days.js';
import { orderStatements, type Statement } from './fill-orders.js';
import { ownerStatements, restStatements } from './fill-rest.js';
import type { Numbers } from './fill-sql.js';
import {
  ATTEMPT_DAYS,
  CALL_DAYS,
  CALLS_PER_ORDER,
  EVENT_DAYS,
  eventsOfDay,
  type GrowthScale,
  ORDER_DAYS,
  ordersOfDay,
  spanOf,
} from './scale.js';

/** A transaction of a fill: what is interrupted in one is done again, and nothing else. */
export interface FillStep {
  readonly name: string;
  readonly statements: readonly (Statement | DayStatement)[];
}

const MODES = ['live', 'sandbox'] as const;
type Mode = (typeof MODES)[number];

/** Oldest first, as rows come in a service. */
export function fillSteps(scale: GrowthScale): readonly FillStep[] {
  const ages = Array.from({ length: ORDER_DAYS }, (_, index) => ORDER_DAYS - 1 - index);
  return [
    { name: 'owners', statements: ownerStatements() },
    ...ages.flatMap((age) => daySteps(scale, age)),
    { name: 'rest', statements: restStatements(scale) },
    { name: 'feed', statements: feedStatements(scale) },
  ];
}

function daySteps(scale: GrowthScale, age: number): FillStep[] {
  const modes = MODES.filter((mode) => age <= EVENT_DAYS[mode]);
  const dayStep = (name: string, statement: DayStatement): FillStep => ({
    name: `${name} of day ${age}`,
    statements: [statement],
  });
  const steps: FillStep[] = [
    {
      name: `orders of day ${age}`,
      statements: orderStatements(numbersOf(scale, age, ordersOfDay(scale))),
    },
    ...modes.flatMap((mode) => {
      const numbers = eventNumbers(scale, mode, age);
      return [
        dayStep(`${mode} events`, eventsOf(mode, numbers, firstPosition(scale, mode, age))),
        dayStep(`${mode} deliveries`, deliveriesOf(mode, numbers)),
      ];
    }),
  ];
  if (age <= ATTEMPT_DAYS) {
    const both = modes.map((mode) => [mode, eventNumbers(scale, mode, age)] as const);
    steps.push(dayStep('attempts', attemptsOf(both)));
  }
  if (age < CALL_DAYS)
    steps.push(dayStep('calls', callsOf(numbersOf(scale, age, ordersOfDay(scale) * CALLS_PER_ORDER))));
  return steps;
}

function numbersOf({ anchor }: GrowthScale, age: number, count: number): Numbers {
  return { first: (ORDER_DAYS - 1 - age) * count + 1, count, ...spanOf(anchor, age) };
}

/** Of the two modes apart: an id is never given twice. */
function eventNumbers(scale: GrowthScale, mode: Mode, age: number): Numbers {
  const numbers = numbersOf(scale, age, eventsOfDay(scale, mode));
  return mode === 'live' ? numbers : { ...numbers, first: numbers.first + scale.deliveries };
}

/** Positions grow with the days; those of a mode's day lie beside each other. */
function firstPosition(scale: GrowthScale, mode: Mode, age: number): number {
  const ofDay = eventsOfDay(scale, 'live') + eventsOfDay(scale, 'sandbox');
  return (ORDER_DAYS - 1 - age) * ofDay + (mode === 'live' ? 0 : eventsOfDay(scale, 'live')) + 1;
}

function feedStatements(scale: GrowthScale): Statement[] {
  const positions = ORDER_DAYS * (eventsOfDay(scale, 'live') + eventsOfDay(scale, 'sandbox'));
  return [
    {
      table: 'event_feed_days',
      sql: `INSERT INTO event_feed_days (partition_name, mode, first_position, last_position)
            SELECT c.relname, e.mode, min(e.position), max(e.position) FROM events e JOIN pg_class c ON c.oid = e.tableoid
            WHERE e.position IS NOT NULL GROUP BY 1, 2`,
    },
    { table: 'event_positions', sql: `SELECT setval('event_positions', ${positions + 1})` },
  ];
}

/** Runs one step; answers its rows. The client's session has neither triggers nor foreign keys. */
export async function runStep(client: Client, { name, statements }: FillStep): Promise<number> {
  await client.query('BEGIN');
  try {
    let rows = 0;
    for (const statement of statements)
      rows += 'partition' in statement ? await fillDay(client, statement) : await insert(client, statement);
    await client.query('INSERT INTO growth.steps (name, rows) VALUES ($1, $2)', [name, rows]);
    await client.query('COMMIT');
    return rows;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
  }
}

async function insert(client: Client, { sql }: Statement): Promise<number> {
  return (await client.query(sql)).rowCount ?? 0;
}

/** A day that a process of the service has made is filled as it is; another one gets its indexes at the end. */
async function fillDay(client: Client, statement: DayStatement): Promise<number> {
  const { table, partition, bounds } = statement;
  const { rows } = await client.query<{ known: boolean }>('SELECT to_regclass($1) IS NOT NULL AS known', [
    partition,
  ]);
  if (rows[0]!.known) return insert(client, statement);
  await client.query(`CREATE TABLE ${partition} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
  const count = await insert(client, statement);
  await client.query(`ALTER TABLE ${table} ATTACH PARTITION ${partition} FOR VALUES ${bounds}`);
  return count;
}
