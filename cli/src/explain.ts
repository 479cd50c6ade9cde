import { CliError, EXIT, type ExitCode, UnfinishedPurchase } from './exit-codes.js';
import { type ApiError, ConnectionError, isApiError } from './partner-api.js';
import { ignoredProxy } from './proxy.js';
import { hintFor } from './refusal-hints.js';
import type { Output } from './terminal/output.js';

/** Machine-readable data in addition to the message. */
type Facts = Readonly<Record<string, unknown>>;

/**
 * Prints why a command ended. No message contains a key, because no key is ever put into an error.
 * @returns the exit code
 */
export function explain(error: unknown, output: Output, facts: Facts = {}): ExitCode {
  if (error instanceof UnfinishedPurchase) {
    output.warn(error.advice);
    return explain(error.cause, output, error.facts);
  }
  if (isApiError(error)) return refused(error, output, facts);
  const [exitCode, message, ...hints] = reasonOf(error);
  return said(output, exitCode, { message, hints, facts });
}

function reasonOf(error: unknown): [exitCode: ExitCode, message: string, ...hints: string[]] {
  if (error instanceof CliError)
    return [error.exitCode, error.message, ...(error.hint === undefined ? [] : [error.hint])];
  if (error instanceof ConnectionError)
    return [
      EXIT.unavailable,
      `${connectionText(error)}.`,
      ...[ignoredProxy(error.call.baseUrl, process.env) ?? []].flat(),
      'Run `esim doctor` to find the cause.',
    ];
  if (error instanceof Error && error.name === 'AbortError') return [EXIT.failed, 'interrupted'];
  return [EXIT.failed, error instanceof Error ? error.message : String(error)];
}

/** Describes a call that got no response, and why. */
export function connectionText({ call, reason }: ConnectionError): string {
  return `${call.method} ${call.baseUrl}${call.path}: ${reason}`;
}

/** Describes why the service is unreachable, for a command that keeps running. */
export function troubleText(error: unknown): string {
  return error instanceof ConnectionError ? connectionText(error) : (error as Error).message;
}

function refused(error: ApiError, output: Output, facts: Facts): ExitCode {
  const fields = error.errors.map(({ pointer, message }) => `  ${pointer} ${message}`);
  const hints = [...fields, hintFor(error) ?? '', error.requestId && `  request ${error.requestId}`];
  const { code, status, requestId } = error;
  return said(output, exitCodeOf(error), {
    message: `${code}: ${error.detail}`,
    hints: hints.filter((hint) => hint !== ''),
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
  { message, hints, facts }: { message: string; hints: readonly string[]; facts: Facts },
): ExitCode {
  output.failure(message, hints);
  output.data({ error: message, exit_code: exitCode, ...facts });
  return exitCode;
}
