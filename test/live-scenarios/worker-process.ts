import { NodeChild } from '../harness/child-process.js';
import { testEnvironment } from '../harness/index.js';

/** A worker as a real process that comes back whenever it was stopped or killed. */
export class WorkerProcess {
  /** Ends one after the other; each waits for the life after the one before. */
  private turn: Promise<void> = Promise.resolve();
  readonly deaths: { readonly at: string; readonly how: 'stop' | 'kill' }[] = [];

  private constructor(
    private readonly env: Record<string, string>,
    private child: NodeChild,
  ) {}

  static async start(databaseUrl: string, settings: Record<string, string>): Promise<WorkerProcess> {
    const env = testEnvironment(databaseUrl, settings);
    const worker = new WorkerProcess(env, launch(env));
    await worker.child.ready();
    return worker;
  }

  /** SIGTERM or SIGKILL, and a new process after it. */
  end(how: 'stop' | 'kill'): Promise<void> {
    this.turn = this.turn.then(() => this.endNow(how));
    return this.turn;
  }

  /** When it is at work again. */
  back(): Promise<void> {
    return this.turn;
  }

  async close(): Promise<void> {
    await this.turn.catch(() => undefined);
    await this.child.kill();
  }

  private async endNow(how: 'stop' | 'kill'): Promise<void> {
    this.deaths.push({ at: new Date().toISOString(), how });
    if (how === 'kill') await this.child.kill();
    else {
      this.child.signal('SIGTERM');
      await this.child.exited();
    }
    this.child = launch(this.env);
    await this.child.ready();
  }
}

function launch(env: Record<string, string>): NodeChild {
  return NodeChild.launch({ args: ['dist/src/main.worker.js'], env });
}
