import { subscribe } from 'node:diagnostics_channel';

/**
 * Errors that ended an attempt to connect: the name, TCP, TLS with the certificate. What an error says of itself is no
 * proof: `ERR_SSL_WRONG_VERSION_NUMBER` comes from a server without TLS, and from one that breaks after it read.
 */
const connectErrors = new WeakSet<object>();

// undici tells here before it fails the requests that waited for the connection. Were it silent, all would be unknown.
subscribe('undici:client:connectError', (message) => {
  const { error } = message as { readonly error?: unknown };
  if (error instanceof Error) connectErrors.add(error);
});

/** Whether the connection failed before anything of the request could leave. When in doubt it is false. */
export function isBeforeSending(error: unknown): boolean {
  return error instanceof Error && connectErrors.has(error);
}

/** A short word for logs and the health table. */
export function failureCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'timeout';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code.slice(0, 64) : 'unknown';
}
