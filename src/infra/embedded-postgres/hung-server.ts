import { untilGone } from './adopted-server.js';
import { hasLivingOwner, readLock } from './lock-file.js';
import { isPostgresOf } from './processes.js';
import { shutDown } from './shutdown.js';

/** Milliseconds that such a server is given. Ending it too early would lose nothing: what is committed is on disk. */
const PATIENCE_MS = 3_000;

/**
 * Ends a server that has outlived its owner but neither serves nor stops (D2). PostgreSQL 18.4 gets there when
 * the fast shutdown comes while it restarts because one of its processes was killed: it then waits for ever.
 */
export class HungServerWatch {
  private readonly dataDir: string;
  private suspect = { pid: 0, since: 0 };

  constructor(dataDir: string) {
    this.dataDir = dataDir;
  }

  /** To be called after each failed attempt to adopt the server that holds the lock. */
  async check(): Promise<void> {
    const lock = await readLock(this.dataDir);
    // A server that is starting may have hours of changes to recover.
    if (!lock || lock.status === 'starting') return;
    if (lock.pid !== this.suspect.pid) this.suspect = { pid: lock.pid, since: Date.now() };
    if (Date.now() - this.suspect.since < PATIENCE_MS) return;
    if (!(await isPostgresOf(lock.pid, this.dataDir))) return;
    if (await hasLivingOwner(this.dataDir, lock)) return;
    await shutDown(lock.pid, untilGone(lock.pid, this.dataDir), 'SIGQUIT');
  }
}
