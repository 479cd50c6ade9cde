import { applyDecorators, type Type } from '@nestjs/common';
import {
  ApiExtension,
  ApiExtraModels,
  ApiOperation,
  ApiResponse,
  getSchemaPath,
  type ReferenceObject,
  type SchemaObject,
} from '@nestjs/swagger';
import type { ErrorCode } from '../../../common/errors/index.js';
import { ReadsList } from '../bounded-lists.interceptor.js';
/** Operation extensions that carry the decorators' data; all are removed from the document. */
export const REFUSALS = 'x-refusals';
export const RESPONSE_TRAITS = 'x-response-traits';
export const WORDING = 'x-wording';

/** A port's description of an operation that the admin API and the portal share. */
export type Wording = Partial<
  Record<'admin' | 'portal', { summary?: string; description?: string; tag?: string }>
>;

/** Properties of an operation's success response in addition to its body. */
export interface ResponseTraits {
  /** A `Location` header with the path of the created object. */
  readonly location?: true;
  /** An `ETag`; a matching `If-None-Match` returns 304 without a body (D5). */
  readonly cached?: true;
  /** Honors `Prefer: wait=N`, and confirms it in `Preference-Applied` (D39). */
  readonly waits?: true;
  /** The call needs no credential, because its body is one. */
  readonly anonymous?: true;
}

interface Described extends ResponseTraits {
  /** One line of the reference, at most 90 characters. */
  readonly summary: string;
  /** Details beyond the summary, in one to three sentences. */
  readonly description: string;
  /** Replaces texts and tag in one port's document. */
  readonly on?: Wording;
}

export interface RespondsOptions extends Described {
  /** Default 200. */
  readonly status?: 200 | 201 | 202;
}

export interface PageOptions extends Described {
  /**
   * An example of `next_cursor` for a list without a last page, where it is never null. Its handler takes `ListSlots`
   * itself, because it may wait without a slot.
   */
  readonly endless?: string;
  /** Fields next to `data`. */
  readonly beside?: Readonly<Record<string, SchemaObject>>;
  /** Fields next to `data` of some responses. */
  readonly optional?: Readonly<Record<string, SchemaObject>>;
}

/** The operation responds with one `model` in the envelope. */
export function Responds(model: Type<unknown>, options: RespondsOptions): MethodDecorator {
  return responds(model, options, { status: options.status ?? 200, schema: envelopeOf(model) });
}

/** The operation responds with a list of `model` in the envelope (D5, D11); concurrent list reads are limited (D43). */
export function RespondsPage(model: Type<unknown>, options: PageOptions): MethodDecorator {
  const documented = responds(model, options, {
    status: 200,
    schema: pageOf(model, options),
  });
  return options.cached || options.endless ? documented : applyDecorators(documented, ReadsList());
}

/** Refusal codes of this operation, in addition to those of every operation. */
export function ApiRefusals(...codes: readonly ErrorCode[]): MethodDecorator {
  return ApiExtension(REFUSALS, codes);
}

function responds(
  model: Type<unknown>,
  { summary, description, location, cached, waits, anonymous, on }: Described,
  { status, schema }: { status: number; schema: ReturnType<typeof envelopeOf> },
): MethodDecorator {
  const traits: ResponseTraits = {
    ...(location ? { location } : {}),
    ...(cached ? { cached } : {}),
    ...(waits ? { waits } : {}),
    ...(anonymous ? { anonymous } : {}),
  };
  return applyDecorators(
    ApiExtraModels(model),
    ApiOperation({ summary, description }),
    ApiResponse({ status, description: SUCCESS[status] ?? 'Done.', schema }),
    ApiExtension(RESPONSE_TRAITS, traits),
    ...(on ? [ApiExtension(WORDING, on)] : []),
  );
}

const SUCCESS: Readonly<Record<number, string>> = {
  201: 'Created.',
  202: 'Accepted. Processing continues in the background.',
};

export const REQUEST_ID_SCHEMA = 'RequestId';

/** `{ request_id, data }` with one `model`. */
export function envelopeOf(model: Type<unknown>): SchemaObject {
  return envelope({ data: { $ref: getSchemaPath(model) } });
}

/** `{ request_id, data, has_more, next_cursor }` with a list of `model` (D5, D11). */
export function pageOf(
  model: Type<unknown>,
  { endless, beside, optional }: Pick<PageOptions, 'endless' | 'beside' | 'optional'> = {},
): SchemaObject {
  const fields = {
    data: { type: 'array', items: { $ref: getSchemaPath(model) } },
    ...beside,
    has_more: { type: 'boolean' },
    next_cursor: endless
      ? {
          type: 'string',
          example: endless,
          description: 'Never null. Send it as `after` to get what is newer.',
        }
      : { type: ['string', 'null'], description: 'The `cursor` of the next page; null on the last page.' },
  };
  return envelope(fields, optional);
}

function envelope(
  fields: Record<string, SchemaObject | ReferenceObject>,
  optional: Record<string, SchemaObject | ReferenceObject> = {},
): SchemaObject {
  return {
    type: 'object',
    required: ['request_id', ...Object.keys(fields)],
    properties: { request_id: { $ref: `#/components/schemas/${REQUEST_ID_SCHEMA}` }, ...fields, ...optional },
  };
}
