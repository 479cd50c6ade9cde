import { setTimeout as sleep } from 'node:timers/promises';
import path from 'node:path';
import { load, prepareCatalog } from './catalog.js';
import type { Cleanups } from './cleanups.js';
import type { BenchOptions } from './options.js';
import { row, type Row, type Section } from './report/report.js';
import { postmasterOf } from './service/database-server.js';
import { memoryOf, memoryOfTree, type MemoryUse } from './service/process-facts.js';
import { ServiceProcess } from './service/service-process.js';

const SAMPLE_EVERY_MS = 250;

export async function benchMemory(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  const bed = await prepareCatalog(options, cleanups);
  const idleMs = options.roundMs * 2;
  await sleep(idleMs);
  const bareIdle = memoryOf(bed.bare.pid);
  const apiIdle = memoryOf(bed.api.pid);
  const bareBusy = await sampleWhile(bed.bare.pid, () =>
    load(bed, { ...options, roundMs: idleMs }, 'bare', bed.keys),
  );
  const apiBusy = await sampleWhile(bed.api.pid, () =>
    load(bed, { ...options, roundMs: idleMs }, 'api', bed.keys),
  );
  const embedded = await startEmbedded(bed.server.folder('embedded'), cleanups);
  await sleep(idleMs);
  return [
    {
      title: 'Memory',
      rows: [
        ...use('all in one, idle: Node', [memoryOf(embedded.pid)]),
        ...use('all in one, idle: PostgreSQL (all its processes)', [memoryOfTree(embedded.postmaster)]),
        ...use('API alone, idle', [apiIdle]),
        ...use('API alone, catalog load, 1,000 keys', apiBusy),
        ...use('bare Fastify, idle', [bareIdle]),
        ...use('bare Fastify, same load', bareBusy),
        row('API / bare Fastify, idle', 'x', [quotient(apiIdle, bareIdle)]),
        row('API / bare Fastify, highest under load', 'x', [quotient(highest(apiBusy), highest(bareBusy))]),
      ],
      notes: [
        'RSS counts shared pages in full; PSS divides them among those who share them, so it is what adds up.',
        `Idle is ${idleMs / 1_000} s after the start; under load the rounds are samples of one run.`,
      ],
    },
  ];
}

async function startEmbedded(
  folder: string,
  cleanups: Cleanups,
): Promise<{ pid: number; postmaster: number }> {
  const service = cleanups.stopping(
    await ServiceProcess.start({ role: 'embedded', env: { DATA_DIR: folder } }),
  );
  return { pid: service.pid, postmaster: postmasterOf(path.join(folder, 'postgres'))! };
}

async function sampleWhile(pid: number, work: () => Promise<unknown>): Promise<(MemoryUse | null)[]> {
  const samples: (MemoryUse | null)[] = [];
  const timer = setInterval(() => samples.push(memoryOf(pid)), SAMPLE_EVERY_MS);
  await work();
  clearInterval(timer);
  return samples;
}

function use(name: string, samples: readonly (MemoryUse | null)[]): Row[] {
  return [
    row(
      `${name}: RSS`,
      'MB',
      samples.map((sample) => sample?.rssMb ?? null),
    ),
    row(
      `${name}: PSS`,
      'MB',
      samples.map((sample) => sample?.pssMb ?? null),
    ),
  ];
}

function highest(samples: readonly (MemoryUse | null)[]): MemoryUse | null {
  return samples.reduce(
    (most, sample) => (sample && sample.rssMb > (most?.rssMb ?? 0) ? sample : most),
    null,
  );
}

function quotient(a: MemoryUse | null, b: MemoryUse | null): number | null {
  return a && b && a.rssMb / b.rssMb;
}
