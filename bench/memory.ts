/**
 * `npm run bench -- memory`: memory of `npm start`, an API process and PostgreSQL, idle and under the load of
 * `catalog`.
 * Baseline: a bare Fastify server with the same payload, in the same run.
 * Use PSS to add up processes, and RSS to compare one process with a container's limit.
 */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { prepareCatalog } from './catalog.js';
import type { BenchOptions } from './main.js';
import type { Cleanups } from './shared/child.js';
import { postmasterOf } from './shared/database-server.js';
import { memoryOf, memoryOfTree, type MemoryUse } from './shared/machine.js';
import { figuresOf, row, type Row, type Section } from './shared/report.js';
import { ServiceProcess } from './shared/service-process.js';

const SAMPLE_EVERY_MS = 250;

type Sample = MemoryUse | null;

export async function benchMemory(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const bed = await prepareCatalog(options, cleanups);
  const idleMs = options.roundMs * 2;
  await sleep(idleMs);
  const bareIdle = memoryOf(bed.bare.pid);
  const apiIdle = memoryOf(bed.api.pid);
  const bareBusy = await sampleWhile(bed.bare.pid, () => bed.load('bare', bed.keys, idleMs));
  const apiBusy = await sampleWhile(bed.api.pid, () => bed.load('api', bed.keys, idleMs));
  const folder = bed.server.folder('embedded');
  const embedded = cleanups.stopping(
    await ServiceProcess.start({ role: 'embedded', env: { DATA_DIR: folder } }),
  );
  await sleep(idleMs);
  const postmaster = postmasterOf(path.join(folder, 'postgres'))!;
  return [
    {
      title: 'Memory',
      rows: [
        ...use('all in one, idle: Node', [memoryOf(embedded.pid)]),
        ...use('all in one, idle: PostgreSQL (all its processes)', [memoryOfTree(postmaster)]),
        ...use('API alone, idle', [apiIdle]),
        ...use('API alone, catalog load, 1,000 keys', apiBusy),
        ...use('bare Fastify, idle', [bareIdle]),
        ...use('bare Fastify, same load', bareBusy),
        row('API / bare Fastify, idle', 'x', [highest([apiIdle]) / highest([bareIdle])]),
        row('API / bare Fastify, highest under load', 'x', [highest(apiBusy) / highest(bareBusy)]),
      ],
      notes: [
        'RSS counts shared pages in full. PSS divides each by the number of processes that share it.',
        `Idle: ${idleMs / 1_000} s after the start. Under load, the rounds are samples of one run.`,
      ],
    },
  ];
}

async function sampleWhile(pid: number, work: () => Promise<unknown>): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  const timer = setInterval(() => samples.push(memoryOf(pid)), SAMPLE_EVERY_MS);
  await work();
  clearInterval(timer);
  return samples;
}

function use(name: string, samples: readonly Sample[]): Row[] {
  const figure = figuresOf(samples, `${name}: `);
  return [
    figure('RSS', 'MB', (sample) => sample?.rssMb ?? null),
    figure('PSS', 'MB', (sample) => sample?.pssMb ?? null),
  ];
}

/** @returns the highest RSS in MB; NaN without /proc */
function highest(samples: readonly Sample[]): number {
  return Math.max(...samples.map((sample) => sample?.rssMb ?? NaN));
}
