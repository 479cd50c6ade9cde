import 'reflect-metadata';
import { type DynamicModule, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PlatformModule } from '../src/apps/platform.module.js';
import { openProcess, type ProcessResources } from '../src/apps/process-resources.js';
import { newId } from '../src/common/ids.js';
import { loadConfig } from '../src/config/index.js';
import { EventRecorder } from '../src/events/index.js';
import { Transactions } from '../src/infra/database/index.js';
import { WebhooksCoreModule } from '../src/webhooks/index.js';
import { serveParent } from './shared/child.js';
import { openLoop } from './shared/load.js';
import { machineNowMs } from './shared/machine.js';

const BULK_BATCH = 500;

export interface EventPace {
  /** Each event goes to a random one of them. */
  readonly partnerIds: readonly string[];
  readonly perSecond: number;
  readonly durationMs: number;
}

/** Parallel arrays with one entry per event. Times come from `machineNowMs`. */
export interface PacedEvents {
  readonly numbers: readonly number[];
  /** Index into `partnerIds`. */
  readonly partners: readonly number[];
  readonly dueAtMs: readonly number[];
  /** When the recording process learned of the commit; null if recording failed. */
  readonly committedAtMs: readonly (number | null)[];
  /** CPU cores used for recording. */
  readonly cpu: number;
}

/** The modules that the API and the worker import to record events: recorder, fan-out, notifier. */
@Module({})
class RecordingModule {
  static of(resources: ProcessResources): DynamicModule {
    return { module: RecordingModule, imports: [PlatformModule.of(resources), WebhooksCoreModule] };
  }
}

let record: (partnerIds: readonly string[], firstNumber: number) => Promise<void>;
let nextNumber = 1;

const api = { open, pace, bulk };
export type EventsApi = typeof api;
serveParent(api);

async function open(databaseUrl: string, secretsKeys: string): Promise<void> {
  const config = loadConfig({
    DATABASE_URL: databaseUrl,
    SECRETS_KEYS: secretsKeys,
    ADMIN_TOKENS: `bench:${'-'.repeat(32)}`,
    LOG_LEVEL: 'warn',
  });
  const module = RecordingModule.of(await openProcess(config, 'api'));
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const transactions = app.get(Transactions, { strict: false });
  const recorder = app.get(EventRecorder, { strict: false });
  record = (partnerIds, firstNumber) =>
    transactions.run((tx) =>
      recorder.record(
        tx,
        partnerIds.map((partnerId, index) => ({
          type: 'esim.activated' as const,
          partnerId,
          mode: 'sandbox' as const,
          happenedAt: new Date(),
          // The receiver reads the event's number from its ICCID.
          data: {
            esim_id: newId('esim'),
            order_id: newId('ord'),
            iccid: String(firstNumber + index).padStart(19, '0'),
          },
        })),
      ),
    );
}

/** Open loop: one transaction per event at its due time, even if earlier ones are still running. */
async function pace({ partnerIds, perSecond, durationMs }: EventPace): Promise<PacedEvents> {
  const count = Math.round((perSecond * durationMs) / 1_000);
  const first = nextNumber;
  nextNumber += count;
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const partners = numbers.map(() => Math.floor(Math.random() * partnerIds.length));
  const committedAtMs = new Array<number | null>(count).fill(null);
  const cpuBefore = process.cpuUsage();
  const startAtMs = machineNowMs();
  const dueAtMs = numbers.map((_, index) => startAtMs + (index * 1_000) / perSecond);
  await openLoop(
    perSecond,
    (begun) => begun >= count,
    (nth) =>
      record([partnerIds[partners[nth]!]!], first + nth).then(
        () => void (committedAtMs[nth] = machineNowMs()),
        // The pool is full because the load exceeds the machine's capacity. Count that as a result.
        () => undefined,
      ),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpu = (user + system) / 1_000 / (machineNowMs() - startAtMs);
  return { numbers, partners, dueAtMs, committedAtMs, cpu };
}

/** Records many events in few transactions, for the partners in turn. */
async function bulk(partnerIds: readonly string[], count: number): Promise<void> {
  for (let done = 0; done < count; done += BULK_BATCH) {
    const length = Math.min(BULK_BATCH, count - done);
    await record(
      Array.from({ length }, (_, index) => partnerIds[(done + index) % partnerIds.length]!),
      nextNumber,
    );
    nextNumber += length;
  }
}
