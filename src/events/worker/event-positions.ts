import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Sweeps } from '../../infra/sweeping/index.js';
import { EventsRepository } from '../events.repository.js';

/** Gives feed positions to committed events, so that readers find little left to do (D39). */
@Injectable()
export class EventPositions {
  constructor(
    events: EventsRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'sweepIntervalMs'>,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'events.positions',
      intervalMs: config.sweepIntervalMs,
      run: async () => {
        while ((await events.hasUnpositioned()) && (await events.assignPositions()) > 0);
      },
    });
  }
}
