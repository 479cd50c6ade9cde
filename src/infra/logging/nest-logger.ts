import type { LoggerService } from '@nestjs/common';
import type { Logger } from 'pino';
import { toLoggableError } from './logger.js';

/** Sends Nest's own words to the process's logger; its start-up chatter is debug. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...context: unknown[]): void {
    this.logger.debug({ event: 'nest.log', context: context.at(-1) }, String(message));
  }

  error(message: unknown, ...context: unknown[]): void {
    const err = message instanceof Error ? toLoggableError(message) : undefined;
    this.logger.error({ event: 'nest.error', err, context: context.at(-1) }, err?.message ?? String(message));
  }

  warn(message: unknown, ...context: unknown[]): void {
    this.logger.warn({ event: 'nest.warn', context: context.at(-1) }, String(message));
  }
}
