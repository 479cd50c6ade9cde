import { BullRegistrar } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { openProcess } from '../../src/apps/process-resources.js';
import { WorkerModule } from '../../src/apps/worker.app.js';
import { loadConfig } from '../../src/config/index.js';
import {
  type EsimProvider,
  type Placement,
  ProviderRegistry,
  type ProviderTopupRequest,
  type ProviderTopupState,
  type RepeatPolicy,
} from '../../src/providers/index.js';
import { type TestDatabase, testEnvironment } from '../harness/index.js';

export interface UpstreamCall {
  readonly call: Placement | 'find';
  readonly reference: string;
  readonly atMs: number;
}

export type Answer = () => Promise<ProviderTopupState | null>;

const OF_THE_TEST: RepeatPolicy = { repeat: 'same_request', source: 'the test' };

/** A provider with scripted responses to top-up calls, which records its calls. */
export class ScriptedUpstream implements EsimProvider {
  readonly name = 'scripted';
  readonly timeoutMs = 60_000;
  readLagMs = 800;
  readonly controlEsim = null;
  readonly repeats = { order: OF_THE_TEST, topup: OF_THE_TEST, cancel: OF_THE_TEST };
  /** The response to calls without a script. */
  otherwise: Answer | null = null;
  private readonly scripts = new Map<string, Answer[]>();
  private readonly calls: UpstreamCall[] = [];

  /** Sets the responses to calls for `reference`, in order. Further calls fail the test. */
  script(reference: string, answers: readonly Answer[]): void {
    this.scripts.set(reference, [...answers]);
  }

  callsFor(reference: string): UpstreamCall[] {
    return this.calls.filter((call) => call.reference === reference);
  }

  async placeTopup(request: ProviderTopupRequest, placement: Placement): Promise<ProviderTopupState> {
    return (await this.answer(placement, request))!;
  }

  findTopup(request: ProviderTopupRequest): Promise<ProviderTopupState | null> {
    return this.answer('find', request);
  }

  placeOrder(): Promise<never> {
    throw new Error('no orders here');
  }

  findOrder(): Promise<never> {
    throw new Error('no orders here');
  }

  findParts(): Promise<never> {
    throw new Error('no orders here');
  }

  cancelOrder(): Promise<never> {
    throw new Error('no orders here');
  }

  findCancelStatuses(): Promise<never> {
    throw new Error('no orders here');
  }

  private async answer(
    call: UpstreamCall['call'],
    { reference }: ProviderTopupRequest,
  ): Promise<ProviderTopupState | null> {
    this.calls.push({ call, reference, atMs: performance.now() });
    const script = this.scripts.get(reference);
    const next = script ? script.shift() : this.otherwise;
    if (!next) throw new Error(`no answer is scripted for ${call}`);
    return next();
  }
}

export interface ScriptedWorker {
  readonly app: INestApplicationContext;
  stop(): Promise<void>;
}

/** Starts a worker in this process that knows `upstream` and the sandbox. */
export async function startWorkerWith(
  upstream: ScriptedUpstream,
  database: TestDatabase,
  env: Record<string, string> = {},
): Promise<ScriptedWorker> {
  const resources = await openProcess(loadConfig(testEnvironment(database.url, env)), 'worker');
  const app = await Test.createTestingModule({ imports: [WorkerModule.of(resources)] }).compile();
  app.useLogger(false);
  await app.init();
  app.get(ProviderRegistry, { strict: false }).register(upstream);
  app.get(BullRegistrar, { strict: false }).register();
  const stop = async (): Promise<void> => {
    await app.close();
    await resources.close();
  };
  return { app, stop };
}
