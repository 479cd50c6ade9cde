export { createLogger, LOGGER, toLoggableError } from './logger.js';
export { LoggerModule } from './logger.module.js';
export { NestLogger } from './nest-logger.js';
