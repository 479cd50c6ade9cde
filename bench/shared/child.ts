import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

type Functions = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;
type Reply = { readonly result?: unknown } | { readonly failure: string };

/**
 * A bench process that runs one function at a time for its parent. Load and receivers run in separate processes so that
 * they do not share an event loop.
 */
export class Child<Api extends Functions> {
  private constructor(private readonly child: ChildProcess) {}

  /** @param module URL of the compiled file, which must call `serveParent` */
  static start<Api extends Functions>(module: URL): Child<Api> {
    return new Child<Api>(fork(module, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** @throws Error when the function throws or the process exits */
  async call<Name extends keyof Api & string>(
    name: Name,
    ...args: Parameters<Api[Name]>
  ): Promise<Awaited<ReturnType<Api[Name]>>> {
    this.child.send({ name, args });
    const aborter = new AbortController();
    try {
      const [reply] = (await Promise.race([
        once(this.child, 'message', { signal: aborter.signal }),
        once(this.child, 'exit', { signal: aborter.signal }).then(([code]) => [
          { failure: `exit code ${code}` },
        ]),
      ])) as [Reply];
      if ('failure' in reply) throw new Error(`${name} in a bench process: ${reply.failure}`);
      return reply.result as Awaited<ReturnType<Api[Name]>>;
    } finally {
      aborter.abort();
    }
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    if (this.child.connected) this.child.disconnect();
    else this.child.kill('SIGTERM');
    await ended;
  }
}

/** Serves the parent's calls in the child. The process exits with its parent. */
export function serveParent(api: Functions): void {
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message) => {
    const { name, args } = message as { name: string; args: never[] };
    api[name]!(...args).then(
      (result) => process.send!({ result }),
      (error: unknown) => process.send!({ failure: (error as Error).stack ?? String(error) }),
    );
  });
}

/** Stops everything that a measurement started, in reverse order. */
export class Cleanups {
  private readonly actions: (() => Promise<void>)[] = [];
  private running: Promise<void> | null = null;

  /** Registers `started.stop` and returns `started`. */
  stopping<T extends { stop(): Promise<void> }>(started: T): T {
    this.actions.push(() => started.stop());
    return started;
  }

  /** Concurrent callers share one run: Ctrl-C calls this, and so does the failure that Ctrl-C causes. */
  stop(): Promise<void> {
    this.running ??= this.stopAll().finally(() => (this.running = null));
    return this.running;
  }

  private async stopAll(): Promise<void> {
    while (this.actions.length > 0) {
      await this.actions.pop()!().catch((error: unknown) => {
        console.error(`cleanup failed: ${(error as Error).message}`);
      });
    }
  }
}
