import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseServer } from './database-server.js';

const LOOK_EVERY_MS = 250;
const PATIENCE_MS = 300_000;

/** The orders that a worker still owes. The next round must not begin before it is idle. */
export class WorkedQueue {
  constructor(
    private readonly server: DatabaseServer,
    private readonly database: string,
  ) {}

  /** Waits until nothing is owed; answers how many orders a second were issued meanwhile. @throws Error when they are not */
  async drain(): Promise<number> {
    const startedAtMs = performance.now();
    const owedAtFirst = await this.owed();
    for (let owed = owedAtFirst; owed > 0; owed = await this.owed()) {
      if (performance.now() - startedAtMs > PATIENCE_MS)
        throw new Error(`${owed} orders are still not issued`);
      await sleep(LOOK_EVERY_MS);
    }
    return owedAtFirst / ((performance.now() - startedAtMs) / 1_000);
  }

  private async owed(): Promise<number> {
    const sql = 'SELECT count(*)::int AS owed FROM orders WHERE next_attempt_at IS NOT NULL';
    const [row] = await this.server.query<{ owed: number }>(sql, [], this.database);
    return row?.owed ?? 0;
  }
}
