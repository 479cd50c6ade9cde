/** Operation extensions that carry the decorators' words to the document; none of them stays in it. */
export const REFUSALS = 'x-refusals';
export const RESPONSE_TRAITS = 'x-response-traits';

/** What the success answer of an operation has besides its body. */
export interface ResponseTraits {
  /** A `Location` header with the path of what was made. */
  readonly location?: true;
  /** An `ETag`; a matching `If-None-Match` is answered with 304 and no body (D5). */
  readonly cached?: true;
}
