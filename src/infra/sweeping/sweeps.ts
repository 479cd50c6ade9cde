import {
  type BeforeApplicationShutdown,
  Global,
  Inject,
  Injectable,
  Module,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { LOGGER } from '../logging/index.js';
import { Sweeper, type SweeperOptions } from './sweeper.js';

/** The sweeps of a worker process: they start when the app has started, and stop before it is gone. */
@Injectable()
export class Sweeps implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly sweepers: Sweeper[] = [];
  private isRunning = false;

  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  /** To be called in a constructor, or later: then the sweep starts at once. */
  register(sweep: Omit<SweeperOptions, 'logger'>): void {
    const sweeper = new Sweeper({ ...sweep, logger: this.logger });
    this.sweepers.push(sweeper);
    if (this.isRunning) sweeper.start();
  }

  onApplicationBootstrap(): void {
    this.isRunning = true;
    for (const sweeper of this.sweepers) sweeper.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.sweepers.map((sweeper) => sweeper.stop()));
  }
}

@Global()
@Module({ providers: [Sweeps], exports: [Sweeps] })
export class SweepsModule {}
