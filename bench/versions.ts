import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { Cleanups } from './cleanups.js';
import { BURST, OPEN_ORDERS, OrderLife } from './life/order-life.js';
import type { BenchOptions } from './options.js';
import { RESULTS, ROOT } from './places.js';
import { row, type Row, type Section } from './report/report.js';
import { quantile } from './report/statistics.js';
import { createByAdmin, createEndpoint } from './service/partners.js';
import { cpuSecondsOfTree } from './service/process-facts.js';
import { ServiceProcess } from './service/service-process.js';

/** Orders a second of the look at latency: below what any of the versions takes. */
const CALM = 40;
const ENTRY = 'dist/src/main.js';

/** One build of the service as `npm start` runs it: all in one, with its own PostgreSQL. */
interface Version {
  readonly name: string;
  readonly service: ServiceProcess;
  readonly life: OrderLife;
  readonly key: string;
}

interface Round {
  readonly perSecond: number;
  readonly cpuMs: number;
  readonly burstMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

/**
 * The life of an order on this checkout and on another one, in turn: what a change gave, on the machine and in the hour
 * in which it is asked. The other one is built before. @throws Error without `--against`
 */
export async function benchVersions(options: BenchOptions, cleanups: Cleanups): Promise<readonly Section[]> {
  if (options.against === null) throw new Error('versions needs --against DIR, a checkout that is built');
  const versions = [
    await startVersion('this', ROOT, cleanups),
    await startVersion('other', path.resolve(options.against), cleanups),
  ];
  const rounds = new Map<string, Round[]>(versions.map(({ name }) => [name, []]));
  for (const version of versions) await measure(version, options);
  for (let round = 0; round < options.rounds; round++) {
    for (const version of round % 2 === 0 ? versions : [...versions].reverse())
      rounds.get(version.name)!.push(await measure(version, options));
    const shown = versions.map(({ name }) => `${name} ${Math.round(rounds.get(name)!.at(-1)!.perSecond)}`);
    process.stderr.write(`versions ${round + 1}/${options.rounds}: ${shown.join(', ')} orders/s\n`);
  }
  return [sectionOf(rounds.get('this')!, rounds.get('other')!, options.against)];
}

async function startVersion(name: string, root: string, cleanups: Cleanups): Promise<Version> {
  const entry = path.join(root, ENTRY);
  if (!existsSync(entry)) throw new Error(`${root} is not built`);
  const life = cleanups.stopping(await OrderLife.start());
  const data = path.join(RESULTS, `versions-${name}-${process.pid}`);
  cleanups.stopping({ stop: () => rm(data, { recursive: true, force: true }) });
  const env = {
    DATA_DIR: data,
    WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
    PORTAL_PORT: name === 'this' ? '3904' : '3914',
  };
  const service = cleanups.stopping(await ServiceProcess.start({ role: 'embedded', entry, env }));
  const partnerId = (await createByAdmin(service, '/internal/v1/partners', { name: 'Bench' })).id!;
  const { key } = await createByAdmin(service, `/internal/v1/partners/${partnerId}/api-keys`, {
    mode: 'sandbox',
  });
  await createEndpoint(service, partnerId, life.receiverUrl);
  return { name, service, life, key: key! };
}

async function measure({ service, life, key }: Version, { warmupMs, roundMs }: BenchOptions): Promise<Round> {
  life.connect([service.apiUrl], key);
  const before = cpuSecondsOfTree(service.pid) ?? NaN;
  const { perSecond, inAll } = await life.runClosed(OPEN_ORDERS, warmupMs, roundMs);
  const cpuMs = (((cpuSecondsOfTree(service.pid) ?? NaN) - before) / inAll) * 1_000;
  const burstMs = await life.runBurst(BURST);
  const { latencies } = await life.runOpen(CALM, warmupMs, roundMs);
  life.disconnect();
  return { perSecond, cpuMs, burstMs, p50Ms: quantile(latencies, 0.5), p95Ms: quantile(latencies, 0.95) };
}

function sectionOf(own: readonly Round[], others: readonly Round[], against: string): Section {
  const both = (figure: string, unit: string, of: (one: Round) => number): Row[] => [
    row(`${figure}: other`, unit, others.map(of)),
    row(`${figure}: this`, unit, own.map(of)),
    row(
      `${figure}: this / other`,
      'x',
      own.map((one, round) => of(one) / of(others[round]!)),
    ),
  ];
  return {
    title: `This checkout beside ${against}: POST /v1/orders until order.issued, all in one, each with its own PostgreSQL`,
    rows: [
      ...both('orders to webhook, sustained', '/s', ({ perSecond }) => perSecond),
      ...both('CPU an order, Node.js and PostgreSQL', 'ms', ({ cpuMs }) => cpuMs),
      ...both(`${BURST} orders at once`, 'ms', ({ burstMs }) => burstMs),
      ...both(`${CALM} orders a second: p50`, 'ms', ({ p50Ms }) => p50Ms),
      ...both(`${CALM} orders a second: p95`, 'ms', ({ p95Ms }) => p95Ms),
    ],
    notes: [
      `${OPEN_ORDERS} orders under way at a time, one partner, one endpoint; caller and receiver share the machine.`,
      'Both stand all the time, the one that is not measured without calls; who begins turns with every round.',
    ],
  };
}
