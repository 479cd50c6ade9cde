import type { Role } from '../../src/apps/process-resources.js';
import { NodeChild } from './child-process.js';
import type { TestDatabase } from './database.js';
import { freePort } from './free-port.js';
import { HttpClient } from './http-client.js';
import { testEnvironment } from './settings.js';

export interface RoleChildOptions {
  readonly role: Exclude<Role, 'all' | 'admin'>;
  readonly database: Pick<TestDatabase, 'url'>;
  readonly env?: Readonly<Record<string, string>>;
}

/** One role as a real process of the built output; it keeps its port when it is killed and started again. */
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

  /** Of the process that runs now, or that was killed last. */
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

  /** SIGKILL: nothing is finished, nothing is said. */
  async kill(): Promise<void> {
    await this.child?.kill();
  }

  /** SIGTERM, as a rollout does it; resolves when the process has ended. */
  async stop(): Promise<void> {
    this.child?.signal('SIGTERM');
    await this.child?.exited();
  }

  /** SIGSTOP: it holds what it holds and notices nothing, until `thaw`. */
  freeze(): void {
    this.child?.signal('SIGSTOP');
  }

  thaw(): void {
    this.child?.signal('SIGCONT');
  }
}
