import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DynamicModule, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PlatformModule } from '../../src/apps/platform.module.js';
import { openProcess, type ProcessResources } from '../../src/apps/process-resources.js';
import { loadConfig } from '../../src/config/index.js';
import { EventRecorder } from '../../src/events/index.js';
import { Transactions } from '../../src/infra/database/index.js';
import { WebhooksCoreModule } from '../../src/webhooks/index.js';
import { answerParent } from '../child-link.js';
import type {
  EventBulk,
  EventLoadQuestion,
  EventLoadSettings,
  EventPace,
  PacedEvents,
} from './event-load.js';
import { machineNowMs } from './machine-clock.js';
import { numberedEvent } from './numbered-events.js';

const TICK_MS = 2;
const BULK_BATCH = 500;

/** What the API and the worker import to record events: the recorder, the fan-out, the notifier. */
@Module({})
class RecordingModule {
  static of(resources: ProcessResources): DynamicModule {
    return { module: RecordingModule, imports: [PlatformModule.of(resources), WebhooksCoreModule] };
  }
}

let record: (partnerIds: readonly string[], firstNumber: number) => Promise<void>;
let nextNumber = 1;

answerParent<EventLoadQuestion, PacedEvents | object>(async (question) => {
  if (question.do === 'open') return open(question);
  return question.do === 'pace' ? pace(question) : bulk(question);
});

async function open({ databaseUrl, secretsKeys }: EventLoadSettings): Promise<object> {
  const config = loadConfig({
    DATABASE_URL: databaseUrl,
    SECRETS_KEYS: secretsKeys,
    ADMIN_TOKENS: `bench:${'-'.repeat(32)}`,
    LOG_LEVEL: 'warn',
  });
  const app = await NestFactory.createApplicationContext(
    RecordingModule.of(await openProcess(config, 'api')),
    {
      logger: false,
    },
  );
  const transactions = app.get(Transactions, { strict: false });
  const recorder = app.get(EventRecorder, { strict: false });
  record = (partnerIds, firstNumber) =>
    transactions.run((tx) =>
      recorder.record(
        tx,
        partnerIds.map((partnerId, index) => numberedEvent(partnerId, firstNumber + index)),
      ),
    );
  return {};
}

async function pace({ partnerIds, perSecond, durationMs }: EventPace): Promise<PacedEvents> {
  const count = Math.round((perSecond * durationMs) / 1_000);
  const first = nextNumber;
  nextNumber += count;
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const partners = numbers.map(() => Math.floor(Math.random() * partnerIds.length));
  const committedAtMs = new Array<number | null>(count).fill(null);
  const cpuBefore = process.cpuUsage();
  const startAtMs = machineNowMs() + TICK_MS;
  const dueAtMs = numbers.map((_, index) => startAtMs + (index * 1_000) / perSecond);
  const recorded: Promise<void>[] = [];
  while (recorded.length < count) {
    for (let index = recorded.length; index < count && dueAtMs[index]! <= machineNowMs(); index++) {
      const partnerId = partnerIds[partners[index]!]!;
      recorded.push(
        record([partnerId], first + index).then(
          () => void (committedAtMs[index] = machineNowMs()),
          // The pool is full: the load is more than the machine takes, and that is a result.
          () => undefined,
        ),
      );
    }
    await sleep(TICK_MS);
  }
  await Promise.all(recorded);
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpu = (user + system) / 1_000 / (machineNowMs() - startAtMs);
  return { numbers, partners, dueAtMs, committedAtMs, cpu };
}

async function bulk({ partnerIds, count }: EventBulk): Promise<object> {
  for (let done = 0; done < count; done += BULK_BATCH) {
    const owners = Array.from(
      { length: Math.min(BULK_BATCH, count - done) },
      (_, index) => partnerIds[(done + index) % partnerIds.length]!,
    );
    await record(owners, nextNumber);
    nextNumber += owners.length;
  }
  return {};
}
