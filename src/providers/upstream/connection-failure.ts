/** Failures of the TLS handshake, which comes before the first byte of the request. */
const HANDSHAKE_FAILURE = /^(ERR_TLS_CERT|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const CONNECTING_CALLS: readonly unknown[] = ['connect', 'getaddrinfo'];

/** Whether the connection failed before anything of the request could leave. When in doubt it is false. */
export function isBeforeSending(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Several addresses were tried, and every one failed.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isBeforeSending);
  const { code, syscall } = error as { code?: unknown; syscall?: unknown };
  if (CONNECTING_CALLS.includes(syscall) || code === 'UND_ERR_CONNECT_TIMEOUT') return true;
  return typeof code === 'string' && HANDSHAKE_FAILURE.test(code);
}

/** A short word for logs and the health table. */
export function failureCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'timeout';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code.slice(0, 64) : 'unknown';
}
