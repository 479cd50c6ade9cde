import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { openProcess, type ProcessResources } from '../../src/apps/process-resources.js';
import { WorkerModule } from '../../src/apps/worker.app.js';
import { loadConfig } from '../../src/config/index.js';
import { Sweeps, type SweeperOptions } from '../../src/infra/sweeps.js';
import { ReviewAlerts } from '../../src/support/worker/review-alerts.js';

type Sweep = Omit<SweeperOptions, 'logger'>;

/** Takes what would run again and again, to be run by hand. */
class SweepsByHand {
  readonly all: Sweep[] = [];

  register(sweep: Sweep): void {
    this.all.push(sweep);
  }
}

/** The worker's classes as the worker builds them, with its connections; nothing runs by itself, no queue is read. */
export class WorkerParts {
  private constructor(
    private readonly module: TestingModule,
    readonly resources: ProcessResources,
    readonly sweeps: readonly Sweep[],
  ) {}

  static async open(env: Readonly<Record<string, string>>): Promise<WorkerParts> {
    const resources = await openProcess(loadConfig(env), 'worker');
    const sweeps = new SweepsByHand();
    const module = await Test.createTestingModule({ imports: [WorkerModule.of(resources)] })
      .overrideProvider(Sweeps)
      .useValue(sweeps)
      .compile();
    module.get(ReviewAlerts, { strict: false }).onApplicationBootstrap();
    return new WorkerParts(module, resources, sweeps.all);
  }

  get<T>(part: Type<T>): T {
    return this.module.get(part, { strict: false });
  }

  /** The module was never started, so it has nothing to end but its connections. */
  async stop(): Promise<void> {
    await this.resources.close();
  }
}
