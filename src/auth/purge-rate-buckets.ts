import { Injectable } from '@nestjs/common';
import { purgeWhileMore, type PurgeStep } from '../infra/purge-in-steps.js';
import { RateBucketsRepository } from './rate-buckets.repository.js';

const STEP_ROWS = 1_000;
/** About 0.2 s of reading. At one run per minute, a million buckets in use are scanned in ten minutes. */
const MAX_KEPT_ROWS = 100_000;

/**
 * Deletes buckets that have been full for a long time, because a missing bucket counts as full. Every unknown caller's
 * network and every session leaves one behind (D44). A run continues where the last one ended, and stops after reading
 * `MAX_KEPT_ROWS` buckets that it keeps.
 */
@Injectable()
export class PurgeRateBuckets {
  /** The last key read. */
  private after = '';

  constructor(private readonly buckets: RateBucketsRepository) {}

  /** Returns the number of deleted buckets. */
  async purge(stopping?: AbortSignal, maxKeptRows = MAX_KEPT_ROWS): Promise<number> {
    let kept = 0;
    return purgeWhileMore(async () => {
      const { isEnd, ...page } = await this.purgePage();
      kept += page.kept;
      return { purged: page.purged, more: !isEnd && kept < maxKeptRows };
    }, stopping);
  }

  private async purgePage(): Promise<Pick<PurgeStep, 'purged'> & { kept: number; isEnd: boolean }> {
    const { read, last, full } = await this.buckets.readPage(this.after, STEP_ROWS);
    const purged = full.length > 0 ? await this.buckets.deleteFull(full) : 0;
    const isEnd = read < STEP_ROWS;
    this.after = isEnd ? '' : last!;
    return { purged, kept: read - purged, isEnd };
  }
}
