import type { Cleanups } from './cleanups.js';
import { GrowthBed } from './growth/bed.js';
import { fillDatabase } from './growth/fill.js';
import { measureAll } from './growth/measure.js';
import { measureScrapes } from './growth/metrics-scrapes.js';
import { comparisonTable, isSlower } from './growth/operation.js';
import type { BenchOptions } from './options.js';
import type { Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';

const SMALL = { database: 'bench_small', orders: 10_000, deliveries: 50_000 };
/** As it is filled, WAL is written for nothing that a restart does not need; autovacuum does not work beside a measurement. */
const SETTINGS = {
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: 0,
  max_wal_size: '1GB',
  checkpoint_timeout: '15min',
  shared_buffers: '1GB',
};

/** Does anything become slower as the tables grow (D44)? */
export async function benchGrowth({ growth }: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const server = cleanups.stopping(await DatabaseServer.start(SETTINGS, growth.dataDir));
  const small = await fillDatabase(server, SMALL, growth.minFreeGb);
  const wanted = { database: 'bench_large', orders: growth.orders, deliveries: growth.deliveries };
  const large = await fillDatabase(server, wanted, growth.minFreeGb);
  const beds = [
    await GrowthBed.open(server, small.scale, cleanups),
    await GrowthBed.open(server, large.scale, cleanups),
  ] as const;
  const scrapes = await measureScrapes(...beds);
  const comparisons = await measureAll(...beds, growth.samples);
  const slower = comparisons.filter((one) => one.failure === undefined && isSlower(one));
  const failed = comparisons.filter(({ failure }) => failure !== undefined);
  const { orders, deliveries } = large.scale;
  const sizes = `10 thousand orders against ${orders.toLocaleString('en')} orders and ${deliveries.toLocaleString('en')} deliveries`;
  return [
    { title: `/metrics: ${sizes}`, rows: [], ...scrapes },
    {
      title: `Growth: ${sizes}`,
      rows: [],
      table: comparisonTable(comparisons),
      notes: [
        `${comparisons.length - slower.length - failed.length} operations within 1.2 times (or half a millisecond), ${slower.length} above, ${failed.length} not measured.`,
        ...failed.map(({ name, failure }) => `NOT MEASURED: ${name}: ${failure}`),
        'One caller, both databases in turn on one server, the same number of days in each; a third of all rows is the caller’s.',
        'Compared is the second look at each sample; the first, whose pages may have to come from the disk, stands beside it.',
        'Claims and purge steps are undone after each sample; sweeps find nothing to do after their warm-up.',
        'Not measured: reconciliation and the count of ended deliveries, which read everything by design.',
        ...small.notes,
        ...large.notes,
      ],
    },
  ];
}
