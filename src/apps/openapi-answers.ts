import type { OpenAPIObject } from '@nestjs/swagger';
import recorded from './recorded-answers.json' with { type: 'json' };
import { METHODS } from '../infra/http/openapi/document/operation.js';

/** Recorded responses by operation, and recorded deliveries by event type. */
const { answers, events }: Readonly<Record<'answers' | 'events', Readonly<Record<string, object>>>> =
  recorded;

/**
 * Replaces generated examples with recorded responses: an issued order has its eSIM, and a refused call has its code.
 * `test/docs/recorded-answers.test.ts` records them on every run and fails on a difference.
 */
export function showRecordedAnswers(document: OpenAPIObject): void {
  const operations = Object.values(document.paths).flatMap((item) =>
    METHODS.flatMap((method) => item[method] ?? []),
  );
  for (const { operationId = '', responses } of operations) {
    const [success] = Object.entries(responses).filter(([status]) => /^2\d\d$/.test(status));
    const content = success && success[1] && !('$ref' in success[1]) ? success[1].content : undefined;
    const example = answers[operationId];
    if (example && content?.['application/json']) content['application/json'].example = example;
  }
  for (const [type, example] of Object.entries(events)) {
    const body = document.webhooks?.[type];
    const delivery = body && !('$ref' in body) ? body.post?.requestBody : undefined;
    if (delivery && !('$ref' in delivery)) delivery.content['application/json']!.example = example;
  }
}
