import { type DynamicModule, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { pino } from 'pino';
import { loadConfig } from '../config/index.js';
import { createLogger, NestLogger } from '../infra/logging.js';
import {
  countUnanswered,
  Reconcile,
  ReconciliationModule,
  type ReconciliationReport,
  renderReport,
} from '../reconciliation/index.js';
import { PlatformModule } from './platform.module.js';
import { openProcess, type ProcessResources } from './process-resources.js';
import {
  parseReconcileOptions,
  RECONCILE_HELP,
  type ReconcileOptions,
  UsageError,
} from './reconcile-options.js';
import { describeStartError } from './role-process.js';

const EXIT = { agreed: 0, differences: 1, incomplete: 2 } as const;

@Module({ imports: [ReconciliationModule] })
class ReconcileModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: ReconcileModule, imports: [PlatformModule.of(process)] };
  }
}

/** `npm run reconcile`: prints the report and answers the exit code. Never throws. */
export async function runReconcile(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  output: Pick<Console, 'log' | 'error'> = console,
): Promise<number> {
  try {
    const options = parseReconcileOptions(args, new Date());
    if (options === null) {
      output.log(RECONCILE_HELP);
      return EXIT.agreed;
    }
    const report = await reconcile(options, env);
    output.log(options.json ? JSON.stringify(report, null, 2) : renderReport(report));
    return exitCodeOf(report);
  } catch (error) {
    if (error instanceof UsageError) output.error(`${error.message}\n\n${RECONCILE_HELP}`);
    else output.error(`could not run: ${describeStartError(error)}`);
    return EXIT.incomplete;
  }
}

async function reconcile(
  { providerWindowMs }: ReconcileOptions,
  env: NodeJS.ProcessEnv,
): Promise<ReconciliationReport> {
  const config = loadConfig(env);
  // The report alone is on stdout.
  const logger = createLogger(config.logLevel, 'reconcile', pino.destination({ dest: 2, sync: true }));
  if (logger.isLevelEnabled('warn')) logger.level = 'error';
  const resources = await openProcess(config, 'reconcile', logger);
  try {
    const app = await NestFactory.createApplicationContext(ReconcileModule.of(resources), {
      abortOnError: false,
      logger: new NestLogger(resources.logger),
    });
    try {
      const stopping = new AbortController().signal;
      return await app.get(Reconcile, { strict: false }).execute({ providerWindowMs, stopping });
    } finally {
      await app.close();
    }
  } finally {
    await resources.close();
  }
}

function exitCodeOf(report: ReconciliationReport): number {
  if (report.differences.length > 0) return EXIT.differences;
  return countUnanswered(report) > 0 ? EXIT.incomplete : EXIT.agreed;
}
