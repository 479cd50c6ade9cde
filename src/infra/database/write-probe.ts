import type { Pool } from 'pg';
import { endsWithin } from '../../common/time-limit.js';

/** Result of a probe. */
type Finding = 'accepts writes' | 'is read-only' | 'does not respond';

/** Checks through a pool whether its database accepts writes. */
export class WriteProbe {
  private finding: Finding = 'does not respond';
  private underWay: Promise<void> | null = null;

  constructor(private readonly pool: Pool) {}

  /**
   * Waits at most `limitMs`. Calls share a probe that has no response yet, because another would hold one more
   * connection.
   */
  async look(limitMs: number): Promise<Finding> {
    this.underWay ??= this.ask().finally(() => (this.underWay = null));
    return (await endsWithin(this.underWay, limitMs)) ? this.finding : 'does not respond';
  }

  /** Never rejects. */
  private async ask(): Promise<void> {
    try {
      const client = await this.pool.connect();
      try {
        const { rows } = await client.query<{ is_read_only: boolean }>(
          `SELECT current_setting('transaction_read_only')::boolean AS is_read_only`,
        );
        const isReadOnly = rows[0]!.is_read_only;
        this.finding = isReadOnly ? 'is read-only' : 'accepts writes';
        // After a failover, another session may reach a server that accepts writes.
        client.release(isReadOnly);
      } catch (error) {
        client.release(error as Error);
        throw error;
      }
    } catch {
      this.finding = 'does not respond';
    }
  }
}
