import { CliError, EXIT, type ExitCode } from './exit-codes.js';
import { type ApiError, ConnectionError, isApiError } from './partner-api.js';
import type { Output } from './terminal/output.js';

/** Prints why a command ended, and answers its exit code. A key is in no message: none is ever put into an error. */
export function explain(error: unknown, output: Output): ExitCode {
  if (error instanceof CliError) return said(output, error.exitCode, error.message, error.hint);
  if (isApiError(error)) return refused(error, output);
  if (error instanceof ConnectionError) {
    return said(output, EXIT.unavailable, error.message, 'esim doctor looks for the reason.');
  }
  if (error instanceof Error && error.name === 'AbortError') return said(output, EXIT.failed, 'interrupted');
  return said(output, EXIT.failed, error instanceof Error ? error.message : String(error));
}

function refused(error: ApiError, output: Output): ExitCode {
  const fields = error.errors.map(({ pointer, message }) => `  ${pointer} ${message}`);
  const hint = [...fields, error.requestId && `  request ${error.requestId}`].filter(Boolean).join('\n');
  return said(output, exitCodeOf(error), `${error.code}: ${error.detail}`, hint, error);
}

function exitCodeOf({ status }: ApiError): ExitCode {
  if (status === 401) return EXIT.unauthorized;
  return status >= 500 ? EXIT.unavailable : EXIT.refused;
}

function said(
  output: Output,
  exitCode: ExitCode,
  message: string,
  hint?: string,
  error?: ApiError,
): ExitCode {
  output.failure(message, hint);
  output.data({
    error: message,
    exit_code: exitCode,
    ...(error ? { code: error.code, status: error.status, request_id: error.requestId } : {}),
  });
  return exitCode;
}
