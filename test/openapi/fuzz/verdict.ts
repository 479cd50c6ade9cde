import type { Answer } from '../../infra/http-edge/raw-client.js';
import { isId } from '../../../src/common/ids.js';
import type { ReadOperation, ReadResponse } from '../reader.js';
import type { SchemaChecker } from '../schemas.js';
import type { Draft } from './draft.js';
import { MARKER } from './hostile.js';

/** Faults of a response, one line each. Empty when it matches the document. */
export function faultsOf(
  operation: ReadOperation,
  draft: Draft,
  answer: Answer,
  checker: SchemaChecker,
): string[] {
  const { status } = answer;
  if (status >= 500) return [`answered ${status}`];
  const response = operation.responses.find((candidate) => candidate.status === String(status));
  if (!response) return [`${status} is not documented`];
  const faults: string[] = [];
  if (draft.expected && !draft.expected.includes(status))
    faults.push(`${status} instead of ${draft.expected.join('/')}`);
  faults.push(...headerFaults(operation, response, answer));
  if (draft.method !== 'HEAD') faults.push(...bodyFaults(response, answer, checker));
  return faults;
}

function headerFaults({ port }: ReadOperation, { headers, status }: ReadResponse, answer: Answer): string[] {
  const faults = Object.entries(headers)
    .filter(([name, header]) => header.required && !answer.headers[name.toLowerCase()])
    .map(([name]) => `no ${name}`);
  if (!isId('req', answer.headers['x-request-id'] ?? '')) faults.push('X-Request-Id is not one of ours');
  // An unparsable request gets its response before the key is known.
  const isUnread = status === '400' && (answer.problem?.code ?? 'bad_request') === 'bad_request';
  const isAdmitted = !['401', '408', '431'].includes(status) && !isUnread;
  if (port === 'partner' && isAdmitted && !answer.headers['x-ratelimit-remaining'])
    faults.push('no rate headers');
  const isUnavailable = answer.problem?.code === 'idempotency_in_progress' || status === '429';
  if (isUnavailable && !answer.headers['retry-after']) faults.push('no Retry-After');
  return faults;
}

function bodyFaults({ content }: ReadResponse, answer: Answer, checker: SchemaChecker): string[] {
  const text = Buffer.from(answer.body, 'latin1').toString('utf8');
  if (Object.keys(content).length === 0) return text === '' ? [] : ['a body where none is documented'];
  const type = (answer.headers['content-type'] ?? '').split(';')[0]!;
  const schema = content[type]?.schema;
  if (!schema) return [`the content type ${type} is not documented`];
  const body = JSON.parse(text) as Record<string, unknown>;
  const faults: string[] = [];
  const violation = checker.check(schema, body);
  if (violation !== null) faults.push(`the body is not as documented: ${violation}`);
  if (body['request_id'] !== answer.headers['x-request-id']) faults.push('request_id is not X-Request-Id');
  if (answer.status >= 400) {
    if (body['status'] !== answer.status) faults.push('the status in the body is another one');
    if (text.includes(MARKER) && !onlyInPointers(body)) faults.push('the problem repeats what was sent');
  }
  return faults;
}

/** A pointer may contain an unknown field name. Nothing else may repeat the input (D6). */
function onlyInPointers(body: Record<string, unknown>): boolean {
  const errors = (body['errors'] ?? []) as { message: string; code: string }[];
  const words = [body['detail'], body['title'], ...errors.flatMap(({ message, code }) => [message, code])];
  return !words.some((word) => String(word).includes(MARKER));
}
