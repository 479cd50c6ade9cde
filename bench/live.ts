import type { Cleanups } from './cleanups.js';
import { benchDelivery } from './delivery.js';
import { benchAcceptance } from './live/acceptance.js';
import type { BenchOptions } from './options.js';
import type { Section } from './report/report.js';
import { DatabaseServer } from './service/database-server.js';

/** What a live order costs to accept, and how soon the partner hears of one: in Sandbox, whose provider is our own. */
export async function benchLive(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const server = cleanups.stopping(await DatabaseServer.start());
  const sections = [await benchAcceptance(server, options, cleanups)];
  // `orders` measures it too: once is enough when everything is measured.
  if (!options.subjects.includes('orders')) sections.push(await benchDelivery(server, options, cleanups));
  return sections;
}
