import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { run } from '../../cli/src/run.js';
import { NodeChild, PROJECT_ROOT } from '../harness/child-process.js';
import { eventually, PATIENCE_MS } from '../harness/index.js';

export const PROGRAM = path.join(PROJECT_ROOT, 'cli/dist/main.js');
const RUN_MS = PATIENCE_MS;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

class Printed extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** A user of the CLI with a separate home folder and the given environment. */
export class CliUser {
  readonly home = mkdtempSync(path.join(tmpdir(), 'esim-cli-'));

  constructor(private readonly variables: Readonly<Record<string, string>> = {}) {}

  /** The environment of this user's programs. */
  get env(): Record<string, string> {
    return { HOME: this.home, ...this.variables };
  }

  /** Runs a command to its end, in this process or, if it reads `stdin`, in a child process. */
  async run(args: readonly string[], { env = {}, stdin }: RunOptions = {}): Promise<Finished> {
    if (stdin !== undefined) return this.spawn(args, { env, stdin });
    const [stdout, stderr] = [new Printed(), new Printed()];
    const streams = { stdout, stderr } as object as {
      stdout: NodeJS.WriteStream;
      stderr: NodeJS.WriteStream;
    };
    const code = await run(args, { environment: { ...this.env, ...env }, ...streams });
    return { code, stdout: stdout.text, stderr: stderr.text };
  }

  /** Runs the command in a child process, because e.g. a proxy is a setting of the whole process. */
  spawn(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    return runProgram(process.execPath, [PROGRAM, ...args], {
      ...options,
      env: { ...this.env, ...options.env },
    });
  }

  /** Starts a command that runs until it is stopped. */
  launch(args: readonly string[], env: Readonly<Record<string, string>> = {}): NodeChild {
    return NodeChild.launch({ args: [PROGRAM, ...args], env: { ...this.env, ...env } });
  }

  /**
   * Starts `listen` for a local server and returns once it is waiting for events.
   * @throws Error with its output if it exits first
   */
  async listen(url: string, args: readonly string[], started: NodeChild[]): Promise<NodeChild> {
    const child = this.launch(['listen', '--forward-to', url, '--json', ...args]);
    // Register it first, so that a failing test can kill it.
    started.push(child);
    await eventually('listen is ready', () => {
      if (!child.running) throw new Error(`listen ended: ${child.stderr}${child.stdout}`);
      return child.stdout.includes('"ready"');
    });
    return child;
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Runs any program with PATH and the given environment only. */
export function runProgram(
  file: string,
  args: readonly string[],
  { env = {}, stdin = '', cwd = tmpdir() }: RunOptions & { readonly cwd?: string } = {},
): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd, timeout: RUN_MS, env: { PATH: process.env['PATH'], ...env } });
    const finished = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (finished.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (finished.stderr += text));
    child.on('error', reject).on('close', (code) => resolve({ ...finished, code }));
    // A command that reads nothing may already have exited.
    child.stdin.on('error', () => undefined);
    child.stdin.end(stdin);
  });
}

/** Parses the lines that `--json` prints. */
export function jsonLines(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
