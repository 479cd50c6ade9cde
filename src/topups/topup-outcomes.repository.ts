import { Injectable } from '@nestjs/common';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { statusesBefore, type TopupStatus } from './topup.js';
import type { TopupLease } from './topup-jobs.repository.js';

/**
 * SQL that records the outcome of what a worker, or support, works on in `topups`. Every write is guarded by the lease's fence and the
 * status; false means that the lease is void, and then nothing may be written.
 */
@Injectable()
export class TopupOutcomesRepository {
  async markCompleted(tx: Tx, lease: TopupLease): Promise<boolean> {
    return this.finish(tx, lease, 'completed', 'completed_at = now()', []);
  }

  async markFailed(tx: Tx, lease: TopupLease, failure: ProviderFailure): Promise<boolean> {
    const assignments = 'failed_at = now(), failure_code = $4, failure_reason = $5';
    return this.finish(tx, lease, 'failed', assignments, [failure.code, failure.reason]);
  }

  private async finish(
    tx: Tx,
    lease: TopupLease,
    to: TopupStatus,
    assignments: string,
    parameters: readonly SqlParameter[],
  ): Promise<boolean> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE topups SET status = $3, next_attempt_at = NULL, lease_until = NULL, last_error = NULL,
         updated_at = now(), ${assignments}
       WHERE id = $1 AND fence = $2 AND status IN (${statusesBefore(to)
         .map((status) => `'${status}'`)
         .join(', ')})`,
      [lease.topupId, lease.fence, to, ...parameters],
    );
    return affected === 1;
  }
}
