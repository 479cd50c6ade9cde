import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { pino } from 'pino';
import { loadConfig } from '../config/index.js';
import { createLogger, NestLogger } from '../infra/logging.js';
import { openProcess, type ProcessResources } from './process-resources.js';

/** A command that exits when its work is done, and its module. */
interface Command {
  readonly name: 'reconcile' | 'restore-epoch';
  readonly moduleOf: (process: ProcessResources) => DynamicModule;
}

/**
 * Runs `work` in the command's app and closes everything afterwards. Logs go to stderr, so that stdout has only the
 * command's output. @throws ConfigError; Error when the database is down; any error of `work`
 */
export async function runInCommandApp<T>(
  { name, moduleOf }: Command,
  env: NodeJS.ProcessEnv,
  work: (app: INestApplicationContext) => Promise<T>,
): Promise<T> {
  const config = loadConfig(env, name);
  const logger = createLogger(config.logLevel, name, pino.destination({ dest: 2, sync: true }));
  if (logger.isLevelEnabled('warn')) logger.level = 'error';
  const resources = await openProcess(config, name, logger);
  try {
    const app = await NestFactory.createApplicationContext(moduleOf(resources), {
      abortOnError: false,
      logger: new NestLogger(resources.logger),
    });
    try {
      return await work(app);
    } finally {
      await app.close();
    }
  } finally {
    await resources.close();
  }
}
