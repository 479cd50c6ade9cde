import { NameNotResolved, TargetRefused } from './vetted-lookup.js';

/** Where an attempt failed, as the delivery log says it; `http_status` is an answer other than 2xx. */
export type FailureClass =
  'dns' | 'connect' | 'tls' | 'timeout' | 'target_refused' | 'http_status' | 'protocol';

const CONNECT_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ETIMEDOUT',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
  'EMFILE',
  'ENFILE',
]);
const TLS_CODE =
  /^(ERR_TLS|ERR_SSL|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH_)/;

/** `class: CODE` of an error, for the log that partners see: never a message, which may hold an inner address. */
export function describeFailure(error: unknown): string {
  if (error instanceof TargetRefused) return 'target_refused';
  if (error instanceof NameNotResolved) return `dns: ${error.code}`;
  const code = codeOf(error);
  return code === null ? 'protocol' : `${classOf(code)}: ${code}`;
}

function classOf(code: string): FailureClass {
  if (CONNECT_CODES.has(code)) return 'connect';
  return TLS_CODE.test(code) ? 'tls' : 'protocol';
}

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? code : null;
}
