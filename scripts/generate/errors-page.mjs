import { ERROR_CATALOGUE } from '../../src/common/errors/error-catalogue.ts';

/**
 * What made the service answer a code, and what its caller does about it: prose that no schema holds. One entry for each
 * code of src/common/errors/error-catalogue.ts; `npm run generate` refuses a code without one.
 */
const ERROR_ADVICE = {
  bad_request: {
    cause: 'The HTTP request itself is malformed: a missing `Host`, a broken percent-encoding, two lengths.',
    cure: 'Use an HTTP library, and encode each part of the path and query by itself.',
  },
  validation_failed: {
    cause: 'A field or parameter is missing, unknown, of the wrong type or out of bounds.',
    cure: 'Read `errors`: each entry has the `pointer` of the field (`/quantity`, `?limit`) and a `message`. Correct them all; the idempotency key was not used up.',
  },
  invalid_json: {
    cause: 'The body is not JSON, is not UTF-8, or names a key twice or `__proto__`.',
    cure: 'Send what `JSON.stringify` or its like writes, with `Content-Type: application/json`.',
  },
  invalid_cursor: {
    cause:
      'The cursor was made for another list, other filters, another account or mode, or its event is no longer kept.',
    cure: 'Pass `next_cursor` unchanged, with the filters of the page before. In the event feed, begin again without `after`; known ids are duplicates.',
  },
  idempotency_key_required: {
    cause: 'A POST has no `Idempotency-Key`, or one that is not 8 to 128 letters, digits, `-` or `_`.',
    cure: 'Make one key per intent (a UUID), store it, and send it with every try.',
  },
  unauthorized: {
    cause: 'There is no bearer key, it is misspelt, it has been revoked, or it has expired.',
    cure: 'Send `Authorization: Bearer <key>`. If the key was right, look at it in the portal and create a new one.',
  },
  insufficient_balance: {
    cause: 'The available balance of the Live wallet is below the price.',
    cure: 'Read `GET /v1/balance`, have a deposit booked, and order with a new idempotency key: this one keeps its answer for 24 hours.',
  },
  sandbox_only: {
    cause: 'A call under `/v1/sandbox` was made with a Live key.',
    cure: 'Use the Sandbox key. Real eSIMs are activated by real devices.',
  },
  partner_suspended: {
    cause: 'Your account is suspended.',
    cure: 'Ask your contact. Keys work again at once when it is reinstated.',
  },
  ip_not_allowed: {
    cause: 'The key is bound to address ranges, and the call came from elsewhere.',
    cure: 'Call from a listed address, or ask your contact for other ranges: the portal does not set them.',
  },
  forbidden: {
    cause: 'The key is valid, but this operation is not for it.',
    cure: 'Use a key or token that may do this.',
  },
  not_found: {
    cause: 'It does not exist, is another account’s, or belongs to the other mode.',
    cure: 'Check the id, and whether a Sandbox id was asked for with a Live key.',
  },
  method_not_allowed: {
    cause: 'The path exists, but not with this method.',
    cure: 'Use a method of the header `Allow`.',
  },
  request_timeout: {
    cause: 'The head or body of the request took too long to arrive.',
    cure: 'Send it again with the same idempotency key.',
  },
  idempotency_in_progress: {
    cause: 'The first call with this key is still running.',
    cure: 'Wait for `Retry-After` and send the same call again: you get the first one’s answer.',
  },
  package_unavailable: {
    cause: 'The package is withdrawn or out of stock.',
    cure: 'Offer another one: `GET /v1/catalog` shows `available`. Order it with a new idempotency key.',
  },
  price_changed: {
    cause: 'The price is above your `max_unit_price` (`max_price` of a top-up).',
    cure: 'Read the package, decide, and order with a new limit and a new idempotency key.',
  },
  reference_taken: {
    cause:
      'Another order or top-up of yours in this mode has this `reference`; references are unique for ever.',
    cure: 'Look at it first: `GET /v1/orders?reference=…`. Most often it is the purchase that you wanted.',
  },
  esim_not_ready: {
    cause:
      'The state of the eSIM does not allow this: usage before activation, an activation after it expired.',
    cure: 'Read `GET /v1/esims/{id}`, and act when its `status` fits.',
  },
  topup_not_supported: {
    cause: 'This top-up package does not fit this eSIM.',
    cure: 'Choose from `GET /v1/esims/{id}/topup-packages`.',
  },
  esim_expired: {
    cause: 'The eSIM has expired and cannot be topped up.',
    cure: 'Order a new eSIM.',
  },
  order_not_cancelable: {
    cause: 'An eSIM of the order has been downloaded, or the order has ended otherwise.',
    cure: 'Read the order. What has been installed cannot be taken back.',
  },
  conflict: {
    cause: 'The current state of the object does not allow this change.',
    cure: 'Read it, and decide again.',
  },
  limit_reached: {
    cause:
      'A limit is used up: the Sandbox quota of the day, or in the portal active keys and endpoints of a mode.',
    cure: 'Wait for 00:00 UTC, when the quota is free again; revoke or delete what is no longer used.',
  },
  payload_too_large: {
    cause: 'The body is larger than the API takes.',
    cure: 'Shorten `metadata`: 20 pairs, values of 500 characters.',
  },
  uri_too_long: {
    cause: 'Path and query are too long.',
    cure: 'Pass fewer or shorter parameters.',
  },
  unsupported_media_type: {
    cause: 'The body is not declared as JSON.',
    cure: 'Send `Content-Type: application/json`, and no body where none is wanted.',
  },
  expectation_failed: {
    cause: 'The request has an `Expect` other than `100-continue`.',
    cure: 'Leave the header out.',
  },
  idempotency_key_reused: {
    cause: 'The key was used for another call or another body within the last 24 hours.',
    cure: 'Use a new key for a new intent. For a retry send the body exactly as before.',
  },
  rate_limited: {
    cause: 'The key has no token left: 60 calls a minute, bursts up to 120; or too many lists at once.',
    cure: 'Wait for `Retry-After` seconds, then send the same call again. Prefer webhooks, or the feed with `Prefer: wait`, to polling.',
  },
  headers_too_large: {
    cause: 'The headers of the request are too large.',
    cure: 'Send fewer cookies and headers.',
  },
  internal_error: {
    cause: 'Something failed on our side.',
    cure: 'Send the same call with the same idempotency key again. When it stays, quote `request_id` to support.',
  },
  service_unavailable: {
    cause: 'The database is away or too slow, or a process is stopping. Nothing was changed.',
    cure: 'Wait for `Retry-After`, then send the same call with the same idempotency key again.',
  },
  session_changed: {
    cause:
      'In the portal: another link was opened in this browser, so its session is no longer the one that `X-Portal-Session` names.',
    cure: 'Load the page again: it then shows the session that the browser has.',
  },
  step_up_required: {
    cause: 'In the portal: the session is older than 15 minutes, and this cannot be undone.',
    cure: 'Sign in again where the portal was opened, then repeat it.',
  },
};

const INTRODUCTION = `# Errors

<!-- Written by \`npm run generate\`: causes and cures from scripts/generate/errors-page.mjs, the rest from the code. -->

Every answer of 400 or above is one JSON object, \`Content-Type: application/problem+json\`:

\`\`\`json
EXAMPLE
\`\`\`

- **Branch on \`code\`**, never on \`title\` or \`detail\`: those are for people and may change.
- **\`retryable\`** says whether the very same call, idempotency key included, may succeed later. Wait for \`Retry-After\`
  where it is given. Where \`retryable\` is false, something has to change first.
- **\`request_id\`** is also in the header \`X-Request-Id\`. Quote it to support.
- **\`errors\`** is there for \`validation_failed\`: one entry for each field, with \`pointer\`, \`code\` and \`message\`.
- A refused POST leaves nothing behind. Refusals that depend on the state (402, 404, 409) are remembered under the
  idempotency key for 24 hours, like successes: see [idempotency](guides/idempotency.md).

A code in \`failure.code\` of an order or top-up, and in \`data.code\` of an event, is one of the
[codes of a failure](webhooks.md#orderfailed), not one of these.
`;

/** docs/errors.md. @throws Error for a code without advice, or advice for no code */
export function renderErrorsPage(api) {
  const codes = Object.keys(ERROR_CATALOGUE);
  const strays = Object.keys(ERROR_ADVICE).filter((code) => !(code in ERROR_CATALOGUE));
  if (strays.length > 0)
    throw new Error(`scripts/generate/errors-page.mjs: no such code ${strays.join(', ')}`);
  const example = JSON.stringify(api.problemOf('validation_failed') ?? api.problemOf('not_found'), null, 2);
  const sections = codes.map((code) => section(code, operationsWith(api, code), api.operations().length));
  return `${INTRODUCTION.replace('EXAMPLE', () => example)}\n${overview(codes)}\n${sections.join('\n')}`;
}

function overview(codes) {
  const rows = codes.map((code) => {
    const { status, title, retryable } = ERROR_CATALOGUE[code];
    return `| ${status} | [\`${code}\`](#${code}) | ${title} | ${retryable ? 'yes' : 'no'} |`;
  });
  return `| status | code | what it says | retryable |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
}

function section(code, operations, all) {
  const advice = ERROR_ADVICE[code];
  if (advice === undefined)
    throw new Error(`scripts/generate/errors-page.mjs has no cause and cure for ${code}`);
  const { status, title, retryable } = ERROR_CATALOGUE[code];
  return `## ${code}

**${status}.** ${title} ${retryable ? 'Retryable.' : 'Not retryable.'}

- **Cause:** ${advice.cause}
- **Cure:** ${advice.cure}
- **Where:** ${where(operations, all)}
`;
}

function where(operations, all) {
  if (operations.length === 0) return 'the internal admin API and the portal only.';
  if (operations.length === all) return 'every call.';
  if (operations.length > 8) return `${operations.length} of ${all} calls.`;
  return `${operations.map(({ method, path }) => `\`${method.toUpperCase()} ${path}\``).join(', ')}.`;
}

function operationsWith(api, wanted) {
  return api.operations().filter((operation) => api.errorsOf(operation).some(({ code }) => code === wanted));
}
