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
import { LOGGER } from '../logging.js';
import type { QueueConnection } from './queue-connection.js';
import { WorkSignals } from './signals/work-signals.js';
import { type NotifyJob, WorkerNotifier } from './worker-notifier.js';

/** Passes the process's queue connection and signals to a Nest app. Workers start with `BullRegistrar.register()`. */
@Module({})
export class JobsModule {
  static of(connection: QueueConnection): DynamicModule {
    return {
      module: JobsModule,
      global: true,
      providers: [{ provide: WorkSignals, useValue: connection.signals }],
      exports: [WorkSignals],
      imports: [
        BullModule.forRootAsync({
          useFactory: () => ({ connection: connection.options }),
          extraOptions: { manualRegistration: true },
        }),
      ],
    };
  }
}

/** Token of the `WorkerNotifier` of one queue. */
function notifierToken(queue: string): string {
  return `WorkerNotifier:${queue}`;
}

export const InjectNotifier = (queue: string): ParameterDecorator => Inject(notifierToken(queue));

/** A dynamic module with the `WorkerNotifier` of `queueName`; create it once and import that constant. */
export function notifierModule(queueName: string): DynamicModule {
  @Injectable()
  class NotifierOwner implements OnModuleDestroy {
    constructor(@InjectNotifier(queueName) private readonly notifier: WorkerNotifier) {}
    async onModuleDestroy(): Promise<void> {
      await this.notifier.settle();
    }
  }
  const notifier: FactoryProvider<WorkerNotifier> = {
    provide: notifierToken(queueName),
    inject: [getQueueToken(queueName), WorkSignals, LOGGER],
    useFactory: (queue: Queue<NotifyJob>, signals: WorkSignals, logger: Logger) => {
      queue.on('error', (error) =>
        logger.warn({ event: 'queue.error', queue: queueName, err: error }, 'queue error'),
      );
      return new WorkerNotifier(queue, signals, logger);
    },
  };
  @Module({})
  class NotifierModule {}
  return {
    module: NotifierModule,
    imports: [BullModule.registerQueue({ name: queueName })],
    providers: [notifier, NotifierOwner],
    exports: [notifier],
  };
}
