import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually, PATIENCE_MS } from './eventually.js';

export const PROJECT_ROOT = path.resolve(import.meta.dirname, '../..');

export interface ChildOptions {
  readonly args: readonly string[];
  /** The complete environment except PATH and HOME, because vitest's variables must not reach the service. */
  readonly env: Readonly<Record<string, string>>;
}

/** A Node.js process in a separate process group, with all of its output. */
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

  /** Its output on stderr, without the build lines of scripts/start.mjs. */
  get complaints(): string[] {
    return this.stderr.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('building: '));
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /**
   * Waits for the line `ready` on stdout.
   * @throws Error with its output if it exits first
   */
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

  /** The exit code, or null after a signal. */
  exited(): Promise<number | null> {
    return this.exit;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.running) this.child.kill(signal);
  }

  /** Sends SIGKILL to the whole process group, and waits until the process is gone. */
  async kill(): Promise<void> {
    if (this.running) {
      try {
        process.kill(-this.pid, 'SIGKILL');
      } catch {
        // The process has just exited.
      }
    }
    await this.exit;
  }
}
