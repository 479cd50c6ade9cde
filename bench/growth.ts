import type { Cleanups } from './cleanups.js';
import { fillDatabase } from './growth/fill.js';
import type { BenchOptions } from './options.js';
import type { Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';

const SMALL = { database: 'bench_small', orders: 10_000, deliveries: 50_000 };
/** As it is filled, WAL is written for nothing that a restart does not need; autovacuum does not work beside a measurement. */
const SETTINGS = {
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: 0,
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
  shared_buffers: '1GB',
};

export async function benchGrowth({ growth }: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const server = cleanups.stopping(await DatabaseServer.start(SETTINGS, growth.dataDir));
  const small = await fillDatabase(server, SMALL, growth.minFreeGb);
  const large = await fillDatabase(
    server,
    { database: 'bench_large', orders: growth.orders, deliveries: growth.deliveries },
    growth.minFreeGb,
  );
  return [{ title: 'Growth', rows: [], notes: [...small.notes, ...large.notes] }];
}
