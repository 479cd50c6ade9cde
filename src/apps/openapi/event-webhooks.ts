import type { OpenAPIObject, OperationObject, ParameterObject } from '@nestjs/swagger';
import { EVENT_TYPES, type EventType } from '../../events/index.js';
import { exampleOf } from '../../infra/http/openapi/document/index.js';
import { EVENT_SUMMARIES, eventSchemaName } from './event-schemas.js';

const DELIVERY_RULES = [
  'Answer 2xx at once, within 60 seconds, and work in the background. Anything else is repeated after 30 s, 60 s,',
  '3 min, 5 min and 15 min, each counted from the end of the attempt before, with the same `X-Service-Delivery`.',
  'Then the endpoint is blocked for one minute; the fifth block in a row disables it. Events may arrive out of order',
  'and more than once: ignore an `id` that you have seen.',
].join(' ');

const SIGNATURE = [
  '`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`; the key is the signing secret exactly as shown.',
  'While a secret is rotated there is a second `v1`: accept when one matches, compared in constant time. Refuse when',
  '`t` is more than 300 seconds from your clock.',
].join(' ');

/** What the service sends to a partner's endpoints (spec section 6, D28 to D31). */
export function eventWebhooks(document: OpenAPIObject): NonNullable<OpenAPIObject['webhooks']> {
  return Object.fromEntries(EVENT_TYPES.map((type) => [type, { post: delivery(document, type) }]));
}

function delivery(document: OpenAPIObject, type: EventType): OperationObject {
  const schema = { $ref: `#/components/schemas/${eventSchemaName(type)}` };
  return {
    operationId: `receive${eventSchemaName(type)}`,
    summary: EVENT_SUMMARIES[type],
    description: DELIVERY_RULES,
    tags: ['Webhooks'],
    // The receiver knows the sender by the signature, not by a credential.
    security: [],
    parameters: headersOf(type),
    requestBody: {
      required: true,
      content: { 'application/json': { schema, example: exampleOf(document, schema, 'every field') } },
    },
    responses: {
      '2XX': { description: 'Taken. The body is not looked at.' },
      default: { description: 'A failure; redirects are not followed.' },
    },
  };
}

function headersOf(type: EventType): ParameterObject[] {
  return [
    header('X-Service-Signature', SIGNATURE, { pattern: '^t=[0-9]+(,v1=[0-9a-f]{64}){1,2}$' }),
    header('X-Service-Event', 'The type of the event.', { enum: [type] }),
    header('X-Service-Delivery', 'The id of the delivery; keep it for support.', { pattern: '^dlv_' }),
  ];
}

function header(
  name: string,
  description: string,
  form: { pattern?: string; enum?: string[] },
): ParameterObject {
  return { name, in: 'header', required: true, description, schema: { type: 'string', ...form } };
}
