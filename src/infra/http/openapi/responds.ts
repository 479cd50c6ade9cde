import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtension, ApiExtraModels, ApiOperation, ApiResponse } from '@nestjs/swagger';
import type { ErrorCode } from '../../../common/errors/index.js';
import { envelopeOf, pageOf } from './envelopes.js';
import { RESPONSE_TRAITS, type ResponseTraits, REFUSALS } from './extensions.js';

export interface RespondsOptions extends ResponseTraits {
  /** One line of the reference. */
  readonly summary: string;
  readonly description?: string;
  /** Default 200. */
  readonly status?: 200 | 201 | 202;
}

export interface PageOptions extends ResponseTraits {
  readonly summary: string;
  readonly description?: string;
  /** The list has no last page: `next_cursor` is never null (D39). */
  readonly endless?: true;
}

/** The operation responds with one `model` in the envelope (D5). */
export function Responds(model: Type<unknown>, options: RespondsOptions): MethodDecorator {
  return responds(model, options, { status: options.status ?? 200, schema: envelopeOf(model) });
}

/** The operation responds with a list of `model` in the envelope (D5, D11). */
export function RespondsPage(model: Type<unknown>, options: PageOptions): MethodDecorator {
  return responds(model, options, { status: 200, schema: pageOf(model, options.endless ?? false) });
}

/** The codes that this operation adds to those that every operation has. */
export function ApiRefusals(...codes: readonly ErrorCode[]): MethodDecorator {
  return ApiExtension(REFUSALS, codes);
}

function responds(
  model: Type<unknown>,
  { summary, description, location, cached }: ResponseTraits & { summary: string; description?: string },
  { status, schema }: { status: number; schema: ReturnType<typeof envelopeOf> },
): MethodDecorator {
  const traits: ResponseTraits = { ...(location ? { location } : {}), ...(cached ? { cached } : {}) };
  return applyDecorators(
    ApiExtraModels(model),
    ApiOperation({ summary, ...(description === undefined ? {} : { description }) }),
    ApiResponse({ status, description: SUCCESS[status] ?? 'Done.', schema }),
    ApiExtension(RESPONSE_TRAITS, traits),
  );
}

const SUCCESS: Readonly<Record<number, string>> = {
  201: 'Created.',
  202: 'Accepted; the work goes on.',
};
