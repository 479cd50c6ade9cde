import { BullModule, getQueueToken } from '@nestjs/bullmq';
import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Injectable,
  Module,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import { LOGGER } from '../logging/index.js';
import type { QueueConnection } from './queue-connection.js';
import { type WakeUpJob, WakeUps } from './wake-ups.js';

/** Gives the process's queue connection to a Nest app. Workers start when `BullRegistrar.register()` is called. */
@Module({})
export class QueueModule {
  static of(connection: QueueConnection): DynamicModule {
    return {
      module: QueueModule,
      imports: [
        BullModule.forRootAsync({
          useFactory: () => ({ connection: connection.options }),
          extraOptions: { manualRegistration: true },
        }),
      ],
    };
  }
}

/** Token of the `WakeUps` of one queue. */
export function wakeUpsToken(queue: string): string {
  return `WakeUps:${queue}`;
}

export const InjectWakeUps = (queue: string): ParameterDecorator => Inject(wakeUpsToken(queue));

/** A dynamic module with the `WakeUps` of `queueName`; create it once and import that constant. */
export function wakeUpsModule(queueName: string): DynamicModule {
  @Injectable()
  class WakeUpsOwner implements OnModuleDestroy {
    constructor(@InjectWakeUps(queueName) private readonly wakeUps: WakeUps) {}
    async onModuleDestroy(): Promise<void> {
      await this.wakeUps.settle();
    }
  }
  const wakeUps: FactoryProvider<WakeUps> = {
    provide: wakeUpsToken(queueName),
    inject: [getQueueToken(queueName), LOGGER],
    useFactory: (queue: Queue<WakeUpJob>, logger: Logger) => {
      queue.on('error', (error) =>
        logger.warn({ event: 'queue.error', queue: queueName, err: error }, 'queue error'),
      );
      return new WakeUps(queue, logger);
    },
  };
  @Module({})
  class WakeUpsModule {}
  return {
    module: WakeUpsModule,
    imports: [BullModule.registerQueue({ name: queueName })],
    providers: [wakeUps, WakeUpsOwner],
    exports: [wakeUps],
  };
}
