import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from '../report/statistics.js';
import type { GrowthBed } from './bed.js';
import { sorted } from './operation.js';

/** Longer than a reading is kept: each scrape reads the database anew. */
const APART_MS = 10_500;
const SCRAPES = 12;
/** For a count that reads a whole table before it is shown. */
const MOST_SCRAPES = 40;

/** `/metrics` of one process, and what its scrapes were. */
interface Target {
  readonly role: string;
  readonly side: 'small' | 'large';
  /** Milliseconds, in the order of the scrapes; the first one finds nothing read. */
  readonly times: number[];
  /** Names of the last scrape. */
  names: ReadonlySet<string>;
  readonly read: () => Promise<string>;
}

export interface ScrapeReport {
  readonly table: readonly (readonly string[])[];
  /** One line each, for people. */
  readonly notes: readonly string[];
}

/** How long `/metrics` of each role takes, and whether it is complete: what the small database shows, the large one does too. */
export async function measureScrapes(small: GrowthBed, large: GrowthBed): Promise<ScrapeReport> {
  const targets = [...targetsOf(small, 'small'), ...targetsOf(large, 'large')];
  for (let nth = 0; nth < SCRAPES || (nth < MOST_SCRAPES && missing(targets).length > 0); nth++) {
    if (nth > 0) await sleep(APART_MS);
    for (const target of targets) await scrape(target);
    process.stderr.write(
      `scrape ${nth + 1}: ${targets.map(({ times }) => ms(times.at(-1)!)).join(' ')} ms\n`,
    );
  }
  const lacking = missing(targets);
  return {
    table: [
      ['/metrics (ms)', 'first', 'p50', 'slowest', 'scrapes', 'metrics'],
      ...targets.map(({ role, side, times, names }) => [
        `${role}, ${side}`,
        ms(times[0]!),
        ms(quantile(sorted(times.slice(1)), 0.5)),
        ms(Math.max(...times.slice(1))),
        String(times.length),
        String(names.size),
      ]),
    ],
    notes: [
      `Scrapes ${APART_MS / 1_000} s apart, each of which reads anew; the worker's without HTTP.`,
      lacking.length === 0
        ? 'Complete: whatever the small database shows, the large one does too.'
        : `NOT COMPLETE after ${targets[0]!.times.length} scrapes, missing of the large one: ${lacking.join(', ')}`,
    ],
  };
}

function targetsOf({ api, admin, worker }: GrowthBed, side: Target['side']): Target[] {
  const target = (role: string, read: () => Promise<string>): Target => ({
    role,
    side,
    times: [],
    names: new Set(),
    read,
  });
  return [
    target('api', () => over(api.opsUrl)),
    target('admin', () => over(admin.opsUrl)),
    target('worker', () => worker.resources.metrics.metrics()),
  ];
}

async function over(opsUrl: string): Promise<string> {
  const response = await fetch(`${opsUrl}/metrics`);
  if (!response.ok) throw new Error(`${opsUrl}/metrics: ${response.status}`);
  return response.text();
}

async function scrape(target: Target): Promise<void> {
  const startedAtMs = performance.now();
  const text = await target.read();
  target.times.push(performance.now() - startedAtMs);
  target.names = new Set(Array.from(text.matchAll(/^([a-z_]+)[{ ]/gm), ([, name]) => name!));
}

function missing(targets: readonly Target[]): string[] {
  const of = (side: Target['side']): readonly Target[] => targets.filter((target) => target.side === side);
  return of('small').flatMap(({ role, names }) => {
    const large = of('large').find((target) => target.role === role)!.names;
    return [...names].filter((name) => !large.has(name)).map((name) => `${role} ${name}`);
  });
}

function ms(milliseconds: number): string {
  return milliseconds.toFixed(1);
}
