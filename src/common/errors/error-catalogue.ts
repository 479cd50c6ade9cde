interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  /** The default `detail`. Clients print it alone: what happened, then what to do. */
  readonly advice: string;
  /** The same request with the same key may succeed later (D6). */
  readonly retryable: boolean;
}

/** @param cure the caller's remedy: a sentence after the title */
const final = (status: number, title: string, cure: string): ErrorEntry => ({
  status,
  title,
  advice: `${title} ${cure}`,
  retryable: false,
});
const transient = (status: number, title: string, cure: string): ErrorEntry => ({
  ...final(status, title, cure),
  retryable: true,
});

/** The closed list of error codes of the partner API, the admin API and the portal (spec section 7, D6). */
export const ERROR_CATALOGUE = {
  bad_request: final(400, 'The request is malformed.', 'Send well-formed HTTP, as an HTTP library does.'),
  validation_failed: final(400, 'A field is invalid.', 'Correct what `errors` names.'),
  invalid_json: final(
    400,
    'The body is not acceptable JSON.',
    'Send one JSON object, in UTF-8, with names in double quotes and without comments or trailing commas.',
  ),
  invalid_cursor: final(
    400,
    'The cursor does not belong to this list.',
    'Pass the next_cursor of the same list with the same filters, or begin without a cursor.',
  ),
  idempotency_key_required: final(
    400,
    'A valid Idempotency-Key is required.',
    'Send exactly one Idempotency-Key header of 8 to 128 letters, digits, - or _.',
  ),
  unauthorized: final(
    401,
    'A valid API key is required.',
    'Send one header "Authorization: Bearer <key>", with a key that is neither revoked nor expired.',
  ),
  insufficient_balance: final(
    402,
    'The wallet does not cover the price.',
    'GET /v1/balance shows what is available. After a deposit, use a new Idempotency-Key.',
  ),
  sandbox_only: final(
    403,
    'This operation exists in Sandbox only.',
    'Use a Sandbox key; eSIMs of Live are activated and used by real devices.',
  ),
  partner_suspended: final(
    403,
    'The partner is suspended.',
    'Ask your contact; the same keys work again after the reinstatement.',
  ),
  ip_not_allowed: final(
    403,
    'This key is not allowed from this address.',
    'Call from an address that the key lists, or use a key without a list.',
  ),
  forbidden: final(403, 'The operation is not allowed.', 'Use a key or a token that may do this.'),
  step_up_required: final(
    403,
    'This needs a session younger than 15 minutes: sign in again.',
    'Then repeat the call.',
  ),
  not_found: final(
    404,
    'There is no such resource.',
    'Check the id, the path, and whether the key is of the same mode: a Sandbox key finds nothing of Live, nor a Live key of Sandbox.',
  ),
  method_not_allowed: final(
    405,
    'The method is not allowed here.',
    'Use one that the header Allow of this answer lists.',
  ),
  request_timeout: transient(
    408,
    'The request took too long to arrive.',
    'Send it again with the same Idempotency-Key.',
  ),
  idempotency_in_progress: transient(
    409,
    'The first call with this Idempotency-Key is still running.',
    'Repeat the call with the same key after Retry-After: it gets the first one’s answer.',
  ),
  package_unavailable: final(
    409,
    'The package cannot be sold now.',
    'Choose another one: GET /v1/catalog shows which are available.',
  ),
  price_changed: final(
    409,
    'The price is above the stated maximum.',
    'Read the package again for its price of now, and use a new Idempotency-Key.',
  ),
  reference_taken: final(
    409,
    'The reference is already in use.',
    'Look up what has it, or use another reference.',
  ),
  esim_not_ready: final(
    409,
    'The state of the eSIM does not allow this.',
    'GET /v1/esims/{id} shows its status: try again when that fits.',
  ),
  topup_not_supported: final(
    409,
    'The package does not fit this eSIM.',
    'GET /v1/esims/{id}/topup-packages lists those that do.',
  ),
  esim_expired: final(409, 'The eSIM has expired.', 'It cannot be topped up: order a new one.'),
  order_not_cancelable: final(
    409,
    'The order can no longer be canceled.',
    'An order can be canceled while it is issued and none of its eSIMs was downloaded or topped up: GET /v1/orders/{id} shows what it is.',
  ),
  session_changed: final(
    409,
    'The browser has another session of the portal than this page.',
    'Reload the page.',
  ),
  conflict: final(409, 'The current state does not allow this.', 'Read it again, and decide anew.'),
  limit_reached: final(409, 'A limit is reached.', 'Remove something that is not used any more.'),
  payload_too_large: final(413, 'The body is too large.', 'Send less: a body has at most 64 KB.'),
  uri_too_long: final(414, 'The URL is too long.', 'Send fewer or shorter parameters.'),
  unsupported_media_type: final(
    415,
    'Only application/json is accepted.',
    'Send Content-Type: application/json, and no body where none is wanted.',
  ),
  expectation_failed: final(417, 'The expectation cannot be met.', 'Leave the header Expect out.'),
  idempotency_key_reused: final(
    422,
    'The Idempotency-Key was used for another request.',
    'Its first request had another path or body: repeat that one, or use a new key for a new intent.',
  ),
  rate_limited: transient(
    429,
    'The rate limit of this key is exceeded.',
    'Try again after Retry-After, with the same Idempotency-Key.',
  ),
  headers_too_large: final(431, 'The request headers are too large.', 'Send fewer or shorter headers.'),
  internal_error: transient(
    500,
    'Something went wrong on our side.',
    'Try again with the same Idempotency-Key; if it stays, send us the request id.',
  ),
  service_unavailable: transient(
    503,
    'The service is not available right now.',
    'Try again with the same Idempotency-Key.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;
export const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[];
