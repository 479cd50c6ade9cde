import { type DestinationStream, type Logger, pino } from 'pino';
import { type DynamicModule, Global, type LoggerService, Module } from '@nestjs/common';
import { escapeControls } from '../common/plain-text.js';
import { LogDestination } from './log-destination.js';
import { fieldsOfWork, mergeFields } from './tracing/index.js';

/** Injection token of the process's pino logger. */
export const LOGGER = Symbol('LOGGER');

const REDACTED_PATHS = [
  'authorization',
  'secret',
  'key',
  'token',
  'activationCode',
  '*.authorization',
  '*.secret',
  '*.token',
  '*.activationCode',
];

interface LoggableError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

/**
 * Reduces an error to name, message, code and stack: database errors carry their statement's parameters, which may be
 * secrets.
 */
export function toLoggableError(error: unknown): LoggableError {
  if (!(error instanceof Error))
    return { type: typeof error, message: 'a value that is not an Error was thrown' };
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
  };
}

const destinations = new WeakMap<Logger, LogDestination>();

/**
 * Creates a logger of JSON lines, on stdout by default. Each line names the subject of the current work, and its trace
 * (D53).
 */
export function createLogger(
  level: string,
  role: string,
  destination: DestinationStream = new LogDestination(),
): Logger {
  const logger = pino(
    {
      level,
      base: { role },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: toLoggableError },
      redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
      mixin: fieldsOfWork,
      mixinMergeStrategy: mergeFields,
      // JSON alone does not escape C1 controls and direction marks in a path or a provider's message.
      hooks: { streamWrite: escapeControls },
    },
    destination,
  );
  if (destination instanceof LogDestination) destinations.set(logger, destination);
  return logger;
}

/** The destination that `createLogger` gave the logger; null for a logger with another one. */
export function logDestinationOf(logger: Logger): LogDestination | null {
  return destinations.get(logger) ?? null;
}

@Global()
@Module({})
export class LoggerModule {
  static of(logger: Logger): DynamicModule {
    return { module: LoggerModule, providers: [{ provide: LOGGER, useValue: logger }], exports: [LOGGER] };
  }
}

/** Redirects Nest's own messages to the process's logger; its start-up messages become debug. */
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
