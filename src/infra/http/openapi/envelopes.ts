import type { Type } from '@nestjs/common';
import { getSchemaPath, type ReferenceObject, type SchemaObject } from '@nestjs/swagger';

export const REQUEST_ID_SCHEMA = 'RequestId';

/** `{ request_id, data }` with one `model` (D5). */
export function envelopeOf(model: Type<unknown>): SchemaObject {
  return envelope({ data: { $ref: getSchemaPath(model) } });
}

/** `{ request_id, data, has_more, next_cursor }` with a list of `model` (D5, D11). */
export function pageOf(model: Type<unknown>, endless: boolean): SchemaObject {
  return envelope({
    data: { type: 'array', items: { $ref: getSchemaPath(model) } },
    has_more: { type: 'boolean' },
    next_cursor: endless
      ? {
          type: 'string',
          example: 'evt_01KAEXAMPLE000000000000000',
          description: 'Never null: come back with it for what is new.',
        }
      : { type: ['string', 'null'], description: 'The `cursor` of the next page; null on the last one.' },
  });
}

function envelope(fields: Record<string, SchemaObject | ReferenceObject>): SchemaObject {
  return {
    type: 'object',
    required: ['request_id', ...Object.keys(fields)],
    properties: { request_id: { $ref: `#/components/schemas/${REQUEST_ID_SCHEMA}` }, ...fields },
  };
}
