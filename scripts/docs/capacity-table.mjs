import { readLife } from './latency-chart.mjs';
import { aligned } from './measured-block.mjs';

const MILLION = 1_000_000;
const SECONDS_A_DAY = 86_400;
const MS_AN_HOUR = 3_600_000;

/**
 * What a million of each thing costs, from the CPU time that was measured of one.
 * @throws Error for a result without the rows that it needs
 */
export function capacityTable(life, catalog, webhooks) {
  const apart = readLife(life).layouts.find(({ name }) => name === 'roles apart');
  const things = [
    {
      what: 'orders, from POST to webhook (Sandbox)',
      api: medianOf(apart?.rowOf('CPU an order, api')),
      worker: medianOf(apart?.rowOf('CPU an order, worker')),
      postgres: medianOf(apart?.rowOf('CPU an order, PostgreSQL')),
    },
    {
      what: 'further deliveries of a backlog',
      worker: medianOf(find(webhooks, 'worker: CPU of its process per delivery')) / 1_000,
      postgres: medianOf(find(webhooks, 'worker: CPU of PostgreSQL per delivery')) / 1_000,
    },
    {
      what: 'calls, `GET /v1/catalog` of 25 packages, 1,000 keys',
      api: medianOf(find(catalog, '1,000 keys: CPU of its process per call')) / 1_000,
      postgres: medianOf(find(catalog, '1,000 keys: CPU of PostgreSQL per call')) / 1_000,
    },
  ];
  return aligned([
    [
      'a million',
      'API, ms each',
      'worker',
      'PostgreSQL',
      'core hours',
      'cores, spread over a day',
      'peak of five times that',
    ],
    ...things.map(({ what, api = 0, worker = 0, postgres }) => {
      const ms = api + worker + postgres;
      const cores = (MILLION * ms) / 1_000 / SECONDS_A_DAY;
      return [
        what,
        ...[api, worker, postgres].map((part) => (part === 0 ? '' : part.toFixed(2))),
        ((MILLION * ms) / MS_AN_HOUR).toFixed(2),
        cores.toFixed(3),
        (5 * cores).toFixed(2),
      ];
    }),
  ]);
}

function find({ sections }, figure) {
  return sections.flatMap(({ rows }) => rows).find((row) => row.figure === figure);
}

function medianOf(row) {
  if (row === undefined) throw new Error('a result lacks a row that docs/capacity.md needs');
  return row.median;
}
