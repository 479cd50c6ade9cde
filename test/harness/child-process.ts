import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually, PATIENCE_MS } from './eventually.js';

export const PROJECT_ROOT = path.resolve(import.meta.dirname, '../..');

export interface ChildOptions {
  readonly args: readonly string[];
  /** The whole environment but for PATH and HOME: vitest's own variables must not reach the service. */
  readonly env: Readonly<Record<string, string>>;
}

/** A Node.js process of ours, in a process group of its own, with everything that it prints. */
export class NodeChild {
  stdout = '';
  stderr = '';
  private readonly exit: Promise<number | null>;

  private constructor(private readonly child: ChildProcess) {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.exit = once(child, 'close').then(([code]) => code as number | null);
  }

  static launch({ args, env }: ChildOptions): NodeChild {
    const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env;
    const child = spawn(process.execPath, args, {
      cwd: PROJECT_ROOT,
      env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    return new NodeChild(child);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** What it had to say on stderr; that scripts/start.mjs builds first is no part of it. */
  get complaints(): string[] {
    return this.stderr.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('building: '));
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Waits for the line `ready` on stdout. @throws Error with what it printed when it ends before. */
  async ready(withinMs = PATIENCE_MS): Promise<void> {
    await eventually(
      'ready on stdout',
      () => {
        if (/^ready$/m.test(this.stdout)) return true;
        if (!this.running) throw new Error(`ended before it was ready: ${this.stderr}${this.stdout}`);
        return false;
      },
      withinMs,
    );
  }

  /** The exit code, null after a signal. */
  exited(): Promise<number | null> {
    return this.exit;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.running) this.child.kill(signal);
  }

  /** SIGKILL to the whole process group; waits until the process is gone. */
  async kill(): Promise<void> {
    if (this.running) {
      try {
        process.kill(-this.pid, 'SIGKILL');
      } catch {
        // It ended in this very moment.
      }
    }
    await this.exit;
  }
}
