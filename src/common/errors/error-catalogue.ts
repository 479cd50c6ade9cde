interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  /** `detail` where nothing more exact is known: what the caller can do, or the title where that says it. */
  readonly advice: string;
  /** The same request with the same key may succeed later (D6). */
  readonly retryable: boolean;
}

const final = (status: number, title: string, advice = title): ErrorEntry => ({
  status,
  title,
  advice,
  retryable: false,
});
const transient = (status: number, title: string, advice = title): ErrorEntry => ({
  status,
  title,
  advice,
  retryable: true,
});

/** The closed list of error codes of the partner API, the admin API and the portal (spec section 7, D6). */
export const ERROR_CATALOGUE = {
  bad_request: final(400, 'The request is malformed.'),
  validation_failed: final(400, 'A field is invalid.'),
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
  idempotency_key_required: final(400, 'A valid Idempotency-Key is required.'),
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
  sandbox_only: final(403, 'This operation exists in Sandbox only.'),
  partner_suspended: final(403, 'The partner is suspended.'),
  ip_not_allowed: final(403, 'This key is not allowed from this address.'),
  forbidden: final(403, 'The operation is not allowed.'),
  step_up_required: final(403, 'This needs a session younger than 15 minutes: sign in again.'),
  not_found: final(404, 'There is no such resource.'),
  method_not_allowed: final(405, 'The method is not allowed here.'),
  request_timeout: transient(408, 'The request took too long to arrive.'),
  idempotency_in_progress: transient(
    409,
    'The first call with this Idempotency-Key is still running.',
    'Repeat the call with the same key after Retry-After: it gets the first one’s answer.',
  ),
  package_unavailable: final(409, 'The package cannot be sold now.'),
  price_changed: final(
    409,
    'The price is above the stated maximum.',
    'The price of this moment is in the catalogue: read it again, and use a new Idempotency-Key.',
  ),
  reference_taken: final(409, 'The reference is already in use.'),
  esim_not_ready: final(409, 'The state of the eSIM does not allow this.'),
  topup_not_supported: final(
    409,
    'The package does not fit this eSIM.',
    'GET /v1/esims/{id}/topup-packages lists those that do.',
  ),
  esim_expired: final(409, 'The eSIM has expired.'),
  order_not_cancelable: final(409, 'The order can no longer be canceled.'),
  session_changed: final(409, 'The browser has another session of the portal than this page.'),
  conflict: final(409, 'The current state does not allow this.'),
  limit_reached: final(409, 'A limit is reached.'),
  payload_too_large: final(413, 'The body is too large.'),
  uri_too_long: final(414, 'The URL is too long.'),
  unsupported_media_type: final(415, 'Only application/json is accepted.'),
  expectation_failed: final(417, 'The expectation cannot be met.'),
  idempotency_key_reused: final(
    422,
    'The Idempotency-Key was used for another request.',
    'Its first request had another path or body: repeat that one, or use a new key for a new intent.',
  ),
  rate_limited: transient(429, 'The rate limit of this key is exceeded.'),
  headers_too_large: final(431, 'The request headers are too large.'),
  internal_error: transient(500, 'Something went wrong on our side.'),
  service_unavailable: transient(503, 'The service is not available right now.'),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;
export const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[];
