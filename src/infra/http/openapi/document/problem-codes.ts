import { ERROR_CATALOGUE, type ErrorCode } from '../../../../common/errors/index.js';
import { type DescribedOperation, parametersOf } from './operation.js';

/** What every call can be refused with, whatever it asks for (D7). */
const ALWAYS: readonly ErrorCode[] = [
  'bad_request',
  'validation_failed',
  'unauthorized',
  'forbidden',
  'method_not_allowed',
  'request_timeout',
  'uri_too_long',
  'expectation_failed',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'service_unavailable',
];
const PARTNER: readonly ErrorCode[] = ['partner_suspended', 'ip_not_allowed'];
const WITH_BODY: readonly ErrorCode[] = ['invalid_json', 'payload_too_large', 'unsupported_media_type'];
const POST: readonly ErrorCode[] = [
  'idempotency_key_required',
  'idempotency_in_progress',
  'idempotency_key_reused',
];

/** Every code that the operation can answer, by status, in the order of the catalogue. */
export function problemCodes(described: DescribedOperation): Map<number, ErrorCode[]> {
  const possible = new Set(possibleCodes(described));
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of Object.keys(ERROR_CATALOGUE) as ErrorCode[]) {
    if (!possible.has(code)) continue;
    const { status } = ERROR_CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

function possibleCodes(described: DescribedOperation): ErrorCode[] {
  const { port, path, method, refusals } = described;
  const isList = parametersOf(described).some((parameter) => parameter.name === 'cursor');
  return [
    ...ALWAYS,
    ...(port === 'partner' ? PARTNER : []),
    ...(method === 'get' ? [] : WITH_BODY),
    ...(method === 'post' ? POST : []),
    ...(path.includes('{') ? (['not_found'] as const) : []),
    ...(isList ? (['invalid_cursor'] as const) : []),
    ...refusals,
  ];
}
