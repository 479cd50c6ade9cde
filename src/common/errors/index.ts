export { AppError, NotFound, ValidationFailed, type AppErrorOptions, type FieldError } from './app-error.js';
export { ERROR_CATALOGUE, ERROR_CODES, type ErrorCode } from './error-catalogue.js';
export { PROBLEM_CONTENT_TYPE, toProblem, type Problem } from './problem.js';
