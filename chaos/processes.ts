import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The project's folder; this file runs as dist/chaos/processes.js. */
export const ROOT = path.resolve(import.meta.dirname, '../..');
/** On a machine that others fill, a start of Node.js alone takes minutes. */
const START_LIMIT_MS = 600_000;
/** Compiled code, as the image brings it and `npm start` keeps it: a third of what a start takes from its neighbors. */
const COMPILED = 'node_modules/.cache/compiled';
const LAST_WORDS = 2_000;
/** Time that a balancer takes to notice a stopping process (`preStop` of the chart). */
const NOTICED_MS = 1_000;

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Ends with this process, however that ends: a run that is given up leaves nothing behind. */
export function endWithUs(child: ChildProcess): ChildProcess {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

type Environment = Readonly<Record<string, string>>;

/** A program with its last words, for whoever has to find out why it ended. */
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

  /** SIGKILL, and waits for the end: a stopped process ends by it, too. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}

export type RoleName = 'api' | 'admin' | 'portal' | 'worker';

/** How a process came to its end after SIGTERM. */
export interface RoleEnd {
  readonly stopMs: number;
  /** Description of its failure; null when it exited by itself with 0. */
  readonly fault: string | null;
}

/** One role of the built service as a process of its own, on ports that it keeps. */
export class RoleProcess {
  private program: Program | null = null;
  /** Whether callers are to call it: an orchestrator takes a process out of its service before it ends it. */
  isInRotation = true;

  private constructor(
    readonly role: RoleName,
    readonly name: string,
    readonly port: number,
    private readonly opsPort: number,
    private readonly env: Environment,
    /** Of the checkout whose built output runs. */
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

  /** Of the program that runs, or ran last. */
  get pid(): number {
    return this.program!.child.pid!;
  }

  /** SIGKILL, and a start. @param whileDead runs between the two */
  async killAndRestart(whileDead: () => Promise<void>): Promise<void> {
    await this.program?.kill();
    // PostgreSQL first ends the statements of the dead that it works on.
    await sleep(50);
    await whileDead();
    await this.launch();
  }

  /** SIGSTOP for so long: it keeps its locks and connections. @param whileFrozen runs after SIGSTOP */
  async freeze(ms: number, whileFrozen: () => Promise<void>): Promise<void> {
    this.program?.child.kill('SIGSTOP');
    await sleep(50);
    await whileFrozen();
    await sleep(ms);
    this.program?.child.kill('SIGCONT');
  }

  /** As an orchestrator ends a process: out of rotation, SIGTERM, and the process's own end. */
  async end(): Promise<RoleEnd> {
    this.isInRotation = false;
    await sleep(NOTICED_MS);
    const { child } = this.program!;
    const ended = once(child, 'exit');
    const startedAt = performance.now();
    child.kill('SIGTERM');
    const [code, signal] = (await ended) as [number | null, string | null];
    const stopMs = performance.now() - startedAt;
    const fault = code === 0 ? null : `${this.name} ended with ${code ?? signal}: ${this.program!.stderr}`;
    return { stopMs, fault };
  }

  async stop(): Promise<void> {
    await this.program?.kill();
  }

  /** A start may meet a database that is away: it is started again, as an orchestrator does. */
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
        throw new Error(`${this.name} does not start: ${this.program.stderr}`);
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

/** A wholesaler's simulator, told over HTTP what goes wrong. */
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
    throw new Error(`a simulator does not start: ${program.stderr}`);
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

/** Runs a command of the service to its end; answers its exit code and the end of what it said. */
export async function runCommand(
  args: readonly string[],
  env: Environment,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const program = new Program(args, env);
  const [code] = (await once(program.child, 'close')) as [number | null];
  return { code, output: `${program.stdout}${program.stderr}` };
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export type InTurn = (work: () => Promise<void>) => Promise<void>;

/** Runs one work at a time: a process that is down is not killed again. */
export function exclusively(): InTurn {
  let turn = Promise.resolve();
  return (work) => {
    const next = turn.then(work);
    turn = next.catch(() => undefined);
    return next;
  };
}
