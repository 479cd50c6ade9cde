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
export const ERROR_CATALOG = {
  bad_request: final(
    400,
    'The request is malformed.',
    'Send well-formed HTTP, for example with an HTTP library.',
  ),
  validation_failed: final(400, 'A field is invalid.', 'Correct the fields listed in `errors`.'),
  invalid_json: final(
    400,
    'The body is not valid JSON.',
    'Send one JSON object in UTF-8, with names in double quotes and without comments or trailing commas.',
  ),
  invalid_cursor: final(
    400,
    'The cursor does not belong to this list.',
    'Pass the next_cursor of the same list with the same filters, or start without a cursor.',
  ),
  idempotency_key_required: final(
    400,
    'A valid Idempotency-Key is required.',
    'Send exactly one Idempotency-Key header of 8 to 128 letters, digits, - or _.',
  ),
  unauthorized: final(
    401,
    'A valid API key is required.',
    'Send the header "Authorization: Bearer <key>" once, with a key that is neither revoked nor expired.',
  ),
  insufficient_balance: final(
    402,
    'The wallet does not cover the price.',
    'GET /v1/balance shows the available amount. After a deposit, retry with a new Idempotency-Key.',
  ),
  spend_limit_reached: final(
    402,
    "The price exceeds what is left of the key's daily spend limit.",
    'GET /v1/me shows what is left. Retry after 00:00 UTC, or with another key, each time with a new Idempotency-Key.',
  ),
  sandbox_only: final(
    403,
    'This operation exists in Sandbox only.',
    'Use a Sandbox key. Real devices activate and use Live eSIMs.',
  ),
  partner_suspended: final(
    403,
    'The partner is suspended.',
    'Contact us. Your keys work again once the partner is reinstated.',
  ),
  ip_not_allowed: final(
    403,
    'This key is not allowed from this address.',
    "Call from an address on the key's allow-list, or use a key without an allow-list.",
  ),
  forbidden: final(403, 'The operation is not allowed.', 'Use a key or token with the required permission.'),
  step_up_required: final(
    403,
    'This action needs a session younger than 15 minutes.',
    'Sign in again, then repeat the action.',
  ),
  not_found: final(
    404,
    'The resource does not exist.',
    'Check the id, the path and the mode of the key. A Sandbox key cannot see Live objects, and a Live key cannot see Sandbox objects.',
  ),
  method_not_allowed: final(
    405,
    'This path does not support the method.',
    'Use a method from the Allow header of this response.',
  ),
  request_timeout: transient(
    408,
    'The request took too long to arrive.',
    'Retry with the same Idempotency-Key.',
  ),
  idempotency_in_progress: transient(
    409,
    'The first call with this Idempotency-Key is still running.',
    'Retry with the same key after Retry-After to get the response of the first call.',
  ),
  package_unavailable: final(
    409,
    'The package is not available.',
    'Choose another package: GET /v1/catalog shows which ones are available.',
  ),
  price_changed: final(
    409,
    'The price is above your maximum.',
    'Fetch the package again for its current price, and retry with a new Idempotency-Key.',
  ),
  reference_taken: final(
    409,
    'The reference is already in use.',
    'Look up the object that has it, or use another reference.',
  ),
  esim_not_ready: final(
    409,
    'The status of the eSIM does not allow this.',
    'Check its status with GET /v1/esims/{id}, and retry when the status allows it.',
  ),
  topup_not_supported: final(
    409,
    'The package does not fit this eSIM.',
    'Choose a package from GET /v1/esims/{id}/topup-packages.',
  ),
  esim_expired: final(
    409,
    'The eSIM has expired.',
    'An expired eSIM can be neither topped up nor installed. Order a new one.',
  ),
  order_not_cancelable: final(
    409,
    'The order can no longer be canceled.',
    'You can cancel an issued order until one of its eSIMs is downloaded or topped up. GET /v1/orders/{id} shows its current status.',
  ),
  not_supported: final(
    409,
    'The eSIM does not support this action now.',
    'Request one of its `actions`: GET /v1/esims lists them. They depend on its wholesaler, its status and its order.',
  ),
  session_changed: final(409, 'You signed in again in another tab.', 'Reload this page.'),
  conflict: final(409, 'The current state does not allow this.', 'Fetch the object again before you retry.'),
  limit_reached: final(409, 'You have reached a limit.', 'Remove something that you no longer use.'),
  payload_too_large: final(413, 'The body is too large.', 'Send at most 64 KB.'),
  uri_too_long: final(414, 'The URL is too long.', 'Send fewer or shorter parameters.'),
  unsupported_media_type: final(
    415,
    'Only application/json is accepted.',
    'Send Content-Type: application/json, and no body if the operation takes none.',
  ),
  expectation_failed: final(
    417,
    'The service does not support the Expect header.',
    'Omit the Expect header.',
  ),
  idempotency_key_reused: final(
    422,
    'The Idempotency-Key was used for another request.',
    'The first request with it had another path or body. Repeat that request unchanged, or use a new key for a new one.',
  ),
  rate_limited: transient(
    429,
    'The rate limit of this key is exceeded.',
    'Wait for Retry-After, then retry with the same Idempotency-Key.',
  ),
  headers_too_large: final(431, 'The request headers are too large.', 'Send fewer or shorter headers.'),
  internal_error: transient(
    500,
    'Something went wrong on our side.',
    'Retry with the same Idempotency-Key. If the error persists, send us the request id.',
  ),
  service_unavailable: transient(
    503,
    'The service is temporarily unavailable.',
    'Retry with the same Idempotency-Key.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERROR_CATALOG;
export const ERROR_CODES = Object.keys(ERROR_CATALOG) as ErrorCode[];
