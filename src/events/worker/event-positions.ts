import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging/index.js';
import { Sweeper } from '../../infra/sweeping/index.js';
import { EventsRepository } from '../events.repository.js';

/** Gives feed positions to committed events, so that readers find little left to do (D39). */
@Injectable()
export class EventPositions implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly sweeper: Sweeper;

  constructor(
    events: EventsRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'sweepIntervalMs'>,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.sweeper = new Sweeper({
      name: 'events.positions',
      intervalMs: config.sweepIntervalMs,
      logger,
      run: async () => {
        while ((await events.hasUnpositioned()) && (await events.assignPositions()) > 0);
      },
    });
  }

  onApplicationBootstrap(): void {
    this.sweeper.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.sweeper.stop();
  }
}
