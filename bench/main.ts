import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { benchAttacks } from './attacks.js';
import { benchCatalog } from './catalog.js';
import { Cleanups } from './cleanups.js';
import { benchGrowth } from './growth.js';
import { benchLife } from './life.js';
import { benchListen } from './listen.js';
import { benchLive } from './live.js';
import { benchMemory } from './memory.js';
import { type BenchOptions, HELP, parseOptions, type Subject } from './options.js';
import { benchOrders } from './orders.js';
import { RESULTS } from './places.js';
import { type MachineFacts, readMachineFacts, renderMachine } from './report/machine.js';
import { renderSection, type Section } from './report/report.js';
import { benchRoles } from './roles.js';
import { benchSoak } from './soak.js';
import { benchVersions } from './versions.js';
import { benchWebhooks } from './webhooks.js';

type Bench = (options: BenchOptions, cleanups: Cleanups) => Promise<readonly Section[]>;

const BENCHES: Readonly<Record<Subject, Bench>> = {
  catalog: benchCatalog,
  orders: benchOrders,
  life: benchLife,
  live: benchLive,
  memory: benchMemory,
  webhooks: benchWebhooks,
  roles: benchRoles,
  growth: benchGrowth,
  soak: benchSoak,
  attacks: benchAttacks,
  listen: benchListen,
  versions: benchVersions,
};

const cleanups = new Cleanups();

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void cleanups.run().finally(() => process.exit(1)));
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options) await run(options);
  else console.log(HELP);
} catch (error) {
  console.error(`bench failed: ${(error as Error).message}`);
  process.exitCode = 1;
}

async function run(options: BenchOptions): Promise<void> {
  mkdirSync(RESULTS, { recursive: true });
  const machine = readMachineFacts();
  console.log(renderMachine(machine));
  const sections: Section[] = [];
  for (const subject of options.subjects) {
    try {
      for (const section of await BENCHES[subject](options, cleanups)) {
        sections.push(section);
        console.log(renderSection(section));
      }
    } finally {
      await cleanups.run();
    }
  }
  console.log(`\nkept in ${keep(options, machine, sections)}`);
}

function keep(options: BenchOptions, machine: MachineFacts, sections: readonly Section[]): string {
  const date = new Date().toISOString();
  const name = options.subjects.length === 1 ? options.subjects[0] : 'all';
  const file = path.join(RESULTS, `${date.replaceAll(':', '-').slice(0, 19)}-${name}.json`);
  const loadAverageAfter = readMachineFacts().loadAverage;
  writeFileSync(file, `${JSON.stringify({ date, options, machine, loadAverageAfter, sections }, null, 2)}\n`);
  return path.relative(process.cwd(), file);
}
