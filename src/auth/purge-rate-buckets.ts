import { Injectable } from '@nestjs/common';
import { purgeWhileMore, type PurgeStep } from '../infra/purge-in-steps.js';
import { RateBucketsRepository } from './rate-buckets.repository.js';

const STEP_ROWS = 1_000;
/** Some 0.2 s of reading. At a run a minute, a million buckets in use are passed in ten minutes. */
const MAX_KEPT_ROWS = 100_000;

/**
 * Deletes buckets that have been full for long, as good as absent: a stranger can have one made for each network that it
 * calls from, and a session leaves its own behind (D44). A run walks over the keys from where the last one ended, as far
 * as it finds buckets to delete, and past at most `MAX_KEPT_ROWS` others.
 */
@Injectable()
export class PurgeRateBuckets {
  /** The last key that was looked at. */
  private after = '';

  constructor(private readonly buckets: RateBucketsRepository) {}

  /** Answers how many buckets are gone. */
  async execute(stopping?: AbortSignal, maxKeptRows = MAX_KEPT_ROWS): Promise<number> {
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
