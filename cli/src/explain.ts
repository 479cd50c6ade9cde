import { CliError, EXIT, type ExitCode, UnfinishedPurchase } from './exit-codes.js';
import { type ApiError, ConnectionError, isApiError } from './partner-api.js';
import { hintFor } from './refusal-hints.js';
import type { Output } from './terminal/output.js';

/** What a program gets beside the message. */
type Facts = Readonly<Record<string, unknown>>;

/** Prints why a command ended, and answers its exit code. A key is in no message: none is ever put into an error. */
export function explain(error: unknown, output: Output, facts: Facts = {}): ExitCode {
  if (error instanceof UnfinishedPurchase) {
    output.warn(error.advice);
    return explain(error.cause, output, error.facts);
  }
  if (isApiError(error)) return refused(error, output, facts);
  const [exitCode, message, hint] = reasonOf(error);
  return said(output, exitCode, { message, hint, facts });
}

function reasonOf(error: unknown): [exitCode: ExitCode, message: string, hint?: string | undefined] {
  if (error instanceof CliError) return [error.exitCode, error.message, error.hint];
  if (error instanceof ConnectionError)
    return [EXIT.unavailable, error.message, 'esim doctor looks for the reason.'];
  if (error instanceof Error && error.name === 'AbortError') return [EXIT.failed, 'interrupted'];
  return [EXIT.failed, error instanceof Error ? error.message : String(error)];
}

function refused(error: ApiError, output: Output, facts: Facts): ExitCode {
  const fields = error.errors.map(({ pointer, message }) => `  ${pointer} ${message}`);
  const hint = [...fields, hintFor(error), error.requestId && `  request ${error.requestId}`]
    .filter(Boolean)
    .join('\n');
  const { code, status, requestId } = error;
  return said(output, exitCodeOf(error), {
    message: `${code}: ${error.detail}`,
    hint,
    facts: { code, status, request_id: requestId, ...facts },
  });
}

function exitCodeOf({ status }: ApiError): ExitCode {
  if (status === 401) return EXIT.unauthorized;
  return status >= 500 ? EXIT.unavailable : EXIT.refused;
}

function said(
  output: Output,
  exitCode: ExitCode,
  { message, hint, facts }: { message: string; hint?: string | undefined; facts: Facts },
): ExitCode {
  output.failure(message, hint);
  output.data({ error: message, exit_code: exitCode, ...facts });
  return exitCode;
}
