import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { Batcher } from '../../infra/batcher.js';
import { LOGGER } from '../../infra/logging.js';
import { METRICS, observeBatches } from '../../infra/metrics.js';
import { InstallPageRepository } from './install-page.repository.js';

const GATHER_MS = 200;
const MAX_OPENINGS = 1_000;
/** Beyond this, the oldest are not counted: a database that is down must not fill the memory. */
const MAX_WAITING = 20_000;

/** Counts openings after the page is sent. A count that fails is logged and lost; the page is shown anyway. */
@Injectable()
export class OpeningCounter implements OnApplicationShutdown {
  private readonly openings: Batcher<string>;

  constructor(
    links: InstallPageRepository,
    @Inject(LOGGER) logger: Logger,
    @Inject(METRICS) metrics: Registry,
  ) {
    this.openings = new Batcher<string>({
      maxItems: MAX_OPENINGS,
      gather: GATHER_MS,
      maxWaiting: MAX_WAITING,
      handle: (linkIds) => links.countOpenings(linkIds),
      sized: observeBatches(metrics, 'install_openings'),
      failed: (linkIds, error) =>
        logger.warn(
          { event: 'install.not_counted', openings: linkIds.length, err: error },
          'failed to count openings of install links',
        ),
    });
  }

  count(linkId: string): void {
    void this.openings.add(linkId);
  }

  /** Runs after the server has sent its last responses. */
  onApplicationShutdown(): Promise<void> {
    return this.openings.drain();
  }
}
