import type { Role } from '../../src/apps/process-resources.js';
import { NodeChild } from './child-process.js';
import type { TestDatabase } from './database.js';
import { freePort } from '../../chaos/free-port.js';
import { HttpClient } from './http-client.js';
import { testEnvironment } from './settings.js';

export interface RoleChildOptions {
  readonly role: Exclude<Role, 'all' | 'admin'>;
  readonly database: Pick<TestDatabase, 'url'>;
  readonly env?: Readonly<Record<string, string>>;
}

/** One role as a process of the build. It keeps its port when it is killed and restarted. */
export class RoleChild {
  private child: NodeChild | null = null;

  private constructor(
    private readonly options: RoleChildOptions,
    private readonly port: number,
  ) {}

  /** Starts it and waits until it is ready. */
  static async start(options: RoleChildOptions): Promise<RoleChild> {
    const child = new RoleChild(options, await freePort());
    await child.restart();
    return child;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The pid of the current process, or of the last one after a kill. */
  get pid(): number {
    return this.child?.pid ?? 0;
  }

  /** The partner API of this process. */
  partnerApi(key: string | null): HttpClient {
    return new HttpClient(this.url, key);
  }

  async restart(): Promise<void> {
    const { role, database, env } = this.options;
    await this.kill();
    this.child = NodeChild.launch({
      args: [`dist/src/main.${role}.js`],
      env: testEnvironment(database.url, { ...env, PORT: String(this.port) }),
    });
    await this.child.ready();
  }

  /** Sends SIGKILL: the process finishes and reports nothing. */
  async kill(): Promise<void> {
    await this.child?.kill();
  }

  /** Sends SIGTERM, as in a rollout, and resolves when the process has ended. */
  async stop(): Promise<void> {
    this.child?.signal('SIGTERM');
    await this.child?.exited();
  }

  /** Sends SIGSTOP: the process keeps its locks and connections and notices nothing until `thaw`. */
  freeze(): void {
    this.child?.signal('SIGSTOP');
  }

  thaw(): void {
    this.child?.signal('SIGCONT');
  }
}
