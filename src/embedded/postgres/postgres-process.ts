import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCode } from './errors.js';

/** A PostgreSQL executable that this process has spawned. */
export interface PostgresProcess {
  readonly pid: number | undefined;
  /** Resolves once it has ended, also when it could not be started at all; never rejects. */
  readonly ended: Promise<ProcessEnd>;
  hasEnded(): boolean;
  /** The last message on stderr that it could not go on; empty when there is none. */
  fatalWords(): string;
  /** The fatal words, else the last line of stderr. */
  lastWords(): string;
}

export interface ProcessEnd {
  readonly ok: boolean;
  /** For example `signal SIGKILL` or `exit code 1`. */
  readonly how: string;
}

/** How a PostgreSQL executable is run. */
export interface RunOptions {
  /** From `commandPrefix`. */
  readonly prefix: readonly string[];
  /** A session of its own, which Ctrl-C in the terminal does not reach. */
  readonly detached: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

const STDERR_KEPT_CHARS = 8_000;
/** How long stderr may stay open after the exit; an orphaned backend can hold it open for ever. */
const STDERR_GRACE_MS = 200;

/** Starts an executable without waiting for anything. */
export function runPostgres(binary: string, args: readonly string[], options: RunOptions): PostgresProcess {
  const [file = binary, ...rest] = [...options.prefix, binary, ...args];
  const child = spawn(file, rest, {
    detached: options.detached,
    stdio: ['ignore', 'ignore', 'pipe'],
    // Nothing is inherited: PGDATA, PGPORT and the like would change the server. The fixed language keeps the
    // messages recognisable, the fixed zone keeps the cluster's default time zone the same on every machine.
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', TZ: 'UTC', ...options.env },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT_CHARS);
  });
  let hasEnded = false;
  const ended = endOf(child, (message) => (stderr += `${message}\n`)).finally(() => (hasEnded = true));
  return {
    pid: child.pid,
    ended,
    hasEnded: () => hasEnded,
    fatalWords: () => withoutPrefix(fatalLineIn(stderr)),
    lastWords: () => withoutPrefix(fatalLineIn(stderr) ?? linesOf(stderr).at(-1)),
  };
}

async function endOf(
  child: ChildProcessByStdio<null, null, Readable>,
  onSpawnError: (message: string) => void,
): Promise<ProcessEnd> {
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const end = await new Promise<ProcessEnd>((resolve) => {
    child.once('error', (error) => {
      onSpawnError(error.message);
      resolve({ ok: false, how: 'not started' });
    });
    child.once('exit', (code, signal) =>
      resolve({ ok: code === 0, how: signal ? `signal ${signal}` : `exit code ${code}` }),
    );
  });
  await Promise.race([closed, sleep(STDERR_GRACE_MS, undefined, { ref: false })]);
  return end;
}

function fatalLineIn(stderr: string): string | undefined {
  return linesOf(stderr).findLast((line) => /\b(?:FATAL|PANIC):/.test(line));
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

/** Drops `2026-01-31 12:00:00.000 UTC [4711] FATAL:`. */
function withoutPrefix(line = ''): string {
  return line.replace(/^.*?\[\d+\] [A-Z]+:\s*/, '').trim();
}

/** Fast shutdown first: it ends the sessions and writes a checkpoint. The later ones leave crash recovery. */
const ESCALATION = [
  { signal: 'SIGINT', waitMs: 8_000 },
  { signal: 'SIGQUIT', waitMs: 8_000 },
  { signal: 'SIGKILL', waitMs: 8_000 },
] as const;

/**
 * Stops a server: SIGINT, after 8 s SIGQUIT, after 8 s more SIGKILL. Resolves when `ended` does.
 * @param signal the first signal to send
 */
export async function shutDown(
  pid: number,
  ended: Promise<unknown>,
  signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT',
): Promise<void> {
  const first = ESCALATION.findIndex((step) => step.signal === signal);
  for (const step of ESCALATION.slice(first)) {
    send(pid, step.signal);
    if (await settlesWithin(ended, step.waitMs)) return;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (systemCode(error) !== 'ESRCH') throw error;
  }
}

async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
