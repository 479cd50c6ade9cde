import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.js';

/** The project's root. This file runs as dist/chaos/processes.js. */
export const ROOT = path.resolve(import.meta.dirname, '../..');
/** On a busy machine, starting Node.js alone can take minutes. */
const START_LIMIT_MS = 600_000;
/**
 * The compile cache, as in the image and with `npm start`. It saves a third of a start's CPU time for the other
 * processes.
 */
const COMPILED = 'node_modules/.cache/compiled';
const LAST_WORDS = 2_000;
/** Time a load balancer needs to notice a stopping process (`preStop` in the chart). */
const NOTICED_MS = 1_000;
/** Time PostgreSQL needs to finish the statements of a dead or frozen process on a busy machine. */
const LAST_STATEMENTS_MS = 500;

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Kills the child when this process exits, so that an interrupted run leaves nothing behind. */
export function endWithUs(child: ChildProcess): ChildProcess {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

type Environment = Readonly<Record<string, string>>;

/** A program with the last part of its output, which explains an unexpected exit. */
class Program {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], env: Environment, root = ROOT) {
    this.child = spawn(process.execPath, args, {
      cwd: root,
      env: { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: path.join(root, COMPILED), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endWithUs(this.child);
    this.child.stdout?.on(
      'data',
      (text: Buffer) => (this.stdout = (this.stdout + text.toString()).slice(-LAST_WORDS)),
    );
    this.child.stderr?.on(
      'data',
      (text: Buffer) => (this.stderr = (this.stderr + text.toString()).slice(-LAST_WORDS)),
    );
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Sends SIGKILL and waits for the exit. This also ends a process stopped by SIGSTOP. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}

export type RoleName = 'api' | 'admin' | 'portal' | 'worker';

/** How a process exited after SIGTERM. */
export interface RoleEnd {
  readonly stopMs: number;
  /** Description of the failure; null if the process exited with 0. */
  readonly fault: string | null;
}

/** One role of the built service in its own process, on fixed ports. */
export class RoleProcess {
  private program: Program | null = null;
  /** Whether callers may use it. An orchestrator takes a process out of rotation before stopping it. */
  isInRotation = true;

  private constructor(
    readonly role: RoleName,
    readonly name: string,
    readonly port: number,
    private readonly opsPort: number,
    private readonly env: Environment,
    /** The checkout whose build runs. */
    private readonly root: string,
  ) {}

  static async start(role: RoleName, name: string, env: Environment, root: string): Promise<RoleProcess> {
    const started = new RoleProcess(role, name, await freePort(), await freePort(), env, root);
    await started.launch();
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Pid of the current or last program. */
  get pid(): number {
    return this.program!.child.pid!;
  }

  /**
   * Kills the process with SIGKILL and starts it again.
   * @param whileDead runs in between
   */
  async killAndRestart(whileDead: () => Promise<void>): Promise<void> {
    await this.program?.kill();
    await sleep(LAST_STATEMENTS_MS);
    await whileDead();
    await this.launch();
  }

  /**
   * Freezes the process with SIGSTOP. It keeps its locks and connections.
   * @param whileFrozen runs right after SIGSTOP
   */
  async freeze(ms: number, whileFrozen: () => Promise<void>): Promise<void> {
    this.program?.child.kill('SIGSTOP');
    await sleep(LAST_STATEMENTS_MS);
    await whileFrozen();
    await sleep(ms);
    this.program?.child.kill('SIGCONT');
  }

  /** Stops the process as an orchestrator does: out of rotation, then SIGTERM, then waiting for its exit. */
  async end(): Promise<RoleEnd> {
    this.isInRotation = false;
    await sleep(NOTICED_MS);
    const { child } = this.program!;
    const ended = once(child, 'exit');
    const startedAt = performance.now();
    child.kill('SIGTERM');
    const [code, signal] = (await ended) as [number | null, string | null];
    const stopMs = performance.now() - startedAt;
    const fault = code === 0 ? null : `${this.name} exited with ${code ?? signal}: ${this.program!.stderr}`;
    return { stopMs, fault };
  }

  async stop(): Promise<void> {
    await this.program?.kill();
  }

  /** Restarts the program until it is ready, as an orchestrator would, because the database may be down. */
  private async launch(): Promise<void> {
    const deadline = performance.now() + START_LIMIT_MS;
    for (;;) {
      const ports = {
        PORT: this.port,
        ADMIN_PORT: this.port,
        PORTAL_PORT: this.port,
        OPS_PORT: this.opsPort,
      };
      this.program = new Program(
        ['--enable-source-maps', `dist/src/main.${this.role}.js`],
        {
          ...this.env,
          HOST: '127.0.0.1',
          ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
        },
        this.root,
      );
      while (this.program.isRunning && performance.now() < deadline) {
        if (await this.isReady()) return;
        await sleep(100);
      }
      if (performance.now() >= deadline)
        throw new Error(`${this.name} did not start: ${this.program.stderr}`);
      await sleep(300);
    }
  }

  private async isReady(): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${this.opsPort}/readyz`, {
      signal: AbortSignal.timeout(2_000),
    }).catch(() => null);
    await answer?.arrayBuffer().catch(() => undefined);
    return answer?.ok ?? false;
  }
}

/** A wholesaler's simulator, whose faults are set over HTTP. */
export class SimulatorProcess {
  private constructor(
    private readonly program: Program,
    readonly url: string,
  ) {}

  static async start(args: readonly string[], env: Environment = {}): Promise<SimulatorProcess> {
    const program = new Program([...args, '--port', '0'], env);
    const deadline = performance.now() + START_LIMIT_MS;
    while (program.isRunning && performance.now() < deadline) {
      const port = /^\{"port":(\d+)\}$/m.exec(program.stdout)?.[1];
      if (port !== undefined) return new SimulatorProcess(program, `http://127.0.0.1:${port}`);
      await sleep(50);
    }
    throw new Error(`a simulator did not start: ${program.stderr}`);
  }

  async control(body: object): Promise<void> {
    const answer = await fetch(`${this.url}/__control`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`control: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  }

  async state<State>(): Promise<State> {
    return (await (await fetch(`${this.url}/__state`)).json()) as State;
  }

  async stop(): Promise<void> {
    await this.program.kill();
  }
}

/** Runs a command of the service. @returns its exit code and the end of its output */
export async function runCommand(
  args: readonly string[],
  env: Environment,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const program = new Program(args, env);
  const [code] = (await once(program.child, 'close')) as [number | null];
  return { code, output: `${program.stdout}${program.stderr}` };
}

export type InTurn = (work: () => Promise<void>) => Promise<void>;

/** @returns a function that runs one task at a time, so that a process that is down is not killed again */
export function exclusively(): InTurn {
  let turn = Promise.resolve();
  return (work) => {
    const next = turn.then(work);
    turn = next.catch(() => undefined);
    return next;
  };
}
