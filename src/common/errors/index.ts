export {
  AppError,
  type AppErrorOptions,
  type FieldError,
  NotFound,
  type Problem,
  PROBLEM_CONTENT_TYPE,
  toProblem,
  ValidationFailed,
} from './app-error.js';
export { ERROR_CATALOG, ERROR_CODES, type ErrorCode } from './error-catalog.js';
