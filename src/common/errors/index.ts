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
export { ERROR_CATALOGUE, ERROR_CODES, type ErrorCode } from './error-catalogue.js';
