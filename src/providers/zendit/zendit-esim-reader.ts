import type { Logger } from 'pino';
import {
  type ProviderEsimReading,
  type ProviderEsimRef,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
} from '../esim-provider.js';
import { UpstreamAnswerInvalid } from '../upstream/index.js';
import { UpstreamStatus, type ZenditApi } from './zendit-api.js';
import { toReading } from './zendit-reading.js';

/** After so many eSIMs in a row without an answer it is Zendit that is in trouble, and no longer an eSIM. */
const FAILURES_IN_A_ROW = 3;
/** A 500 may be about one eSIM; these are about the whole service. */
const WHOLE_SERVICE: readonly number[] = [502, 503, 504];

/**
 * Reads eSIMs one by one, so that one that is answered with an error, or in a form that nobody knows, keeps none of
 * the others from being read: it is missing among the readings, and whoever asked asks again.
 */
export class ZenditEsimReader {
  constructor(
    private readonly api: Pick<ZenditApi, 'findPlans'>,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  /**
   * One after the other: polls may only join the last of the pace's backlog.
   * @throws ProviderUnavailable, ProviderOutcomeUnknown when the trouble is not that of single eSIMs
   */
  async readAll(
    esims: readonly ProviderEsimRef[],
    signal: AbortSignal,
  ): Promise<readonly ProviderEsimReading[]> {
    const readings: ProviderEsimReading[] = [];
    let failuresInARow = 0;
    for (const esim of esims) {
      try {
        const reading = await this.read(esim, signal);
        if (reading) readings.push(reading);
        failuresInARow = 0;
      } catch (error) {
        if (signal.aborted || !isAboutOneEsim(error)) throw error;
        this.skipped(esim, error);
        if (++failuresInARow < FAILURES_IN_A_ROW) continue;
        // What was read before is kept; those behind are asked for again.
        if (readings.length > 0) return readings;
        throw error;
      }
    }
    return readings;
  }

  private async read(esim: ProviderEsimRef, signal: AbortSignal): Promise<ProviderEsimReading | null> {
    const plans = await this.api.findPlans(esim.iccid, signal);
    if (plans === null) return null;
    try {
      return toReading(esim, plans, new Date());
    } catch (error) {
      if (!(error instanceof UpstreamAnswerInvalid)) throw error;
      this.skipped(esim, error);
      return null;
    }
  }

  private skipped({ providerEsimId }: ProviderEsimRef, error: unknown): void {
    const path = error instanceof UpstreamAnswerInvalid ? error.path : null;
    const status = error instanceof UpstreamStatus ? error.status : null;
    this.logger.warn({ event: 'upstream.reading_skipped', provider: 'zendit', providerEsimId, path, status });
  }
}

/** An answer that says nothing, or none; not a circuit, a limit, a key or a connection that takes no calls. */
function isAboutOneEsim(error: unknown): boolean {
  if (error instanceof UpstreamStatus) return !WHOLE_SERVICE.includes(error.status);
  return error instanceof ProviderOutcomeUnknown && !(error instanceof ProviderUnavailable);
}
