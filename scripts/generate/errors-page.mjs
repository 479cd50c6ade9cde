import { ERROR_CATALOG } from '../../src/common/errors/error-catalog.ts';

/**
 * Cause and fix of each code in src/common/errors/error-catalog.ts, in prose that no schema holds. `npm run generate`
 * fails for a code without an entry.
 */
const ERROR_ADVICE = {
  bad_request: {
    cause: 'The HTTP request itself is malformed: a missing `Host`, a broken percent-encoding, two lengths.',
    cure: 'Use an HTTP library, and encode each part of the path and query separately.',
  },
  validation_failed: {
    cause: 'A field or parameter is missing, unknown, of the wrong type or out of bounds.',
    cure: 'Read `errors`: each entry has the `pointer` of the field (`/quantity`, `?limit`) and a `message`. Correct every field. You can reuse the idempotency key.',
  },
  invalid_json: {
    cause: 'The body is not JSON, or contains `__proto__`.',
    cure: 'Serialize the body with a JSON library, and send `Content-Type: application/json`.',
  },
  invalid_cursor: {
    cause:
      'The cursor belongs to another list, other filters, another account or another mode, or its event or change is past the retention period.',
    cure: 'Pass `next_cursor` unchanged, with the filters of the previous page. In the event feed, start again without `after`, and ignore known ids. For changes of the catalog, copy the catalog again.',
  },
  idempotency_key_required: {
    cause: 'A POST has no `Idempotency-Key`, or one that is not 8 to 128 letters, digits, `-` or `_`.',
    cure: 'Create one key per intent (a UUID), store it, and send it with every attempt.',
  },
  unauthorized: {
    cause: 'The bearer key is missing, misspelled, revoked or expired.',
    cure: 'Send `Authorization: Bearer <key>`. If the key is correct, check its state in the portal, or create a new one.',
  },
  insufficient_balance: {
    cause: 'The available balance of the Live wallet is below the price.',
    cure: 'Check `GET /v1/balance`, make a deposit, and order with a new idempotency key. The service stores the response for the old key for 24 hours.',
  },
  spend_limit_reached: {
    cause: 'The price exceeds what is left of the daily spend limit of this key, or has another currency.',
    cure: '`GET /v1/me` shows what is left. Order after 00:00 UTC or with another key, each time with a new idempotency key. The service stores the response for the old key for 24 hours.',
  },
  sandbox_only: {
    cause: 'A call under `/v1/sandbox` was made with a Live key.',
    cure: 'Use the Sandbox key. Real eSIMs are activated by real devices.',
  },
  partner_suspended: {
    cause: 'Your account is suspended.',
    cure: 'Contact us. Your keys work again once the account is reinstated.',
  },
  ip_not_allowed: {
    cause: 'The key is bound to address ranges, and the call came from elsewhere.',
    cure: 'Call from a listed address, or create a key with other address ranges in the portal.',
  },
  forbidden: {
    cause: 'The key is valid, but it does not have the scope of this operation. `detail` names the scope.',
    cure: 'Use a key or token with that scope. `GET /v1/me` shows the scopes of a key.',
  },
  not_found: {
    cause: 'The object does not exist, belongs to another account, or belongs to the other mode.',
    cure: 'Check the id, and check that the mode of the key matches the mode of the object.',
  },
  method_not_allowed: {
    cause: 'The path exists, but does not support this method.',
    cure: 'Use a method from the `Allow` header.',
  },
  request_timeout: {
    cause: 'The head or body of the request took too long to arrive.',
    cure: 'Retry with the same idempotency key.',
  },
  idempotency_in_progress: {
    cause: 'The first call with this key is still running.',
    cure: 'Wait for `Retry-After`, then repeat the call to get the response of the first call.',
  },
  package_unavailable: {
    cause: 'The package is withdrawn or out of stock.',
    cure: 'Offer another package: `GET /v1/catalog` shows `available`. Order it with a new idempotency key.',
  },
  price_changed: {
    cause: 'The price is above your `max_unit_price` (`max_price` of a top-up).',
    cure: 'Fetch the package for its current price, and order with a new limit and a new idempotency key.',
  },
  reference_taken: {
    cause:
      'Another of your orders or top-ups in this mode has this `reference`. A reference stays unique forever.',
    cure: 'Look it up first: `GET /v1/orders?reference=…`. Usually it is the purchase that you wanted.',
  },
  esim_not_ready: {
    cause: 'The status of the eSIM does not allow this, for example usage before activation.',
    cure: 'Check `status` in `GET /v1/esims/{id}`, and retry when the status allows it.',
  },
  topup_not_supported: {
    cause: 'This top-up package does not fit this eSIM.',
    cure: 'Choose from `GET /v1/esims/{id}/topup-packages`.',
  },
  esim_expired: {
    cause: 'The eSIM has expired, so it can be neither topped up nor installed.',
    cure: 'Order a new eSIM.',
  },
  order_not_cancelable: {
    cause: 'An eSIM of the order has been downloaded, or the order is not issued.',
    cure: 'Fetch the order to see its status. You cannot cancel an installed eSIM.',
  },
  not_supported: {
    cause:
      "The eSIM's wholesaler does not offer the action, or the status of the eSIM or its order does not allow it now.",
    cure: 'Request one of the `actions` that the eSIM lists. While an action is pending, wait until it has ended.',
  },
  conflict: {
    cause: 'The current state of the object does not allow this change.',
    cure: 'Fetch the object again before you retry.',
  },
  limit_reached: {
    cause:
      'You have reached a limit: the daily Sandbox quota, or in the portal the active keys or endpoints of a mode.',
    cure: 'The quota resets at 00:00 UTC. In the portal, revoke keys or delete endpoints that you no longer use.',
  },
  payload_too_large: {
    cause: 'The body is larger than 64 KB.',
    cure: 'Shorten `metadata`: at most 20 pairs, with values of at most 500 characters.',
  },
  uri_too_long: {
    cause: 'The path and query are too long.',
    cure: 'Send fewer or shorter parameters.',
  },
  unsupported_media_type: {
    cause: 'The body is not declared as JSON.',
    cure: 'Send `Content-Type: application/json`, and no body if the operation takes none.',
  },
  expectation_failed: {
    cause: 'The request has an `Expect` other than `100-continue`.',
    cure: 'Omit the header.',
  },
  idempotency_key_reused: {
    cause: 'The key was used for another call or another body within the last 24 hours.',
    cure: 'Use a new key for a new intent. For a retry, send the body unchanged.',
  },
  rate_limited: {
    cause: 'The key exceeded 60 calls per minute with bursts of up to 120, or ran too many lists at once.',
    cure: 'Wait for `Retry-After` seconds, then repeat the call. Instead of polling, use webhooks, or the feed with `Prefer: wait`.',
  },
  headers_too_large: {
    cause: 'The headers of the request are too large.',
    cure: 'Send fewer cookies and headers.',
  },
  internal_error: {
    cause: 'Something failed on our side.',
    cure: 'Repeat the call with the same idempotency key. If the error persists, contact support with the `request_id`.',
  },
  service_unavailable: {
    cause: 'The database is unavailable or too slow, or a process is stopping. Nothing was changed.',
    cure: 'Wait for `Retry-After`, then repeat the call with the same idempotency key.',
  },
  session_changed: {
    cause:
      'In the portal, you signed in again in another tab, so the session differs from the one in `X-Portal-Session`.',
    cure: 'Reload the page to continue in the new session.',
  },
  step_up_required: {
    cause: 'In the portal, the session is older than 15 minutes, and the action is sensitive.',
    cure: 'Sign in again, then repeat the action.',
  },
};

const INTRODUCTION = `# Errors

<!-- Written by \`npm run generate\`: causes and cures from scripts/generate/errors-page.mjs, the rest from the code. -->

Every response with status 400 or above is one JSON object, \`Content-Type: application/problem+json\`:

\`\`\`json
EXAMPLE
\`\`\`

- **Branch on \`code\`**, not on \`title\` or \`detail\`: those are for people and may change.
- **\`retryable\`** is true if the same call with the same idempotency key may succeed later. Wait for \`Retry-After\` if
  the response has it. If \`retryable\` is false, change something before you retry.
- **\`request_id\`** is also in the \`X-Request-Id\` header. Include it when you contact support.
- **\`errors\`** is present for \`validation_failed\`: one entry per field, with \`pointer\`, \`code\` and \`message\`.
- A rejected POST changes nothing. The service stores rejections that depend on state (402, 404, 409) under the
  idempotency key for 24 hours, like successes: see [idempotency](guides/idempotency.md).

A code in \`failure.code\` of an order or top-up, and in \`data.code\` of an event, is one of the
[codes of a failure](webhooks.md#orderfailed), not one of these.
`;

/**
 * Renders docs/errors.md.
 * @throws Error for a code without advice, or advice without a code
 */
export function renderErrorsPage(api) {
  const codes = Object.keys(ERROR_CATALOG);
  const strays = Object.keys(ERROR_ADVICE).filter((code) => !(code in ERROR_CATALOG));
  if (strays.length > 0)
    throw new Error(`scripts/generate/errors-page.mjs: no such code ${strays.join(', ')}`);
  const example = JSON.stringify(api.problemOf('validation_failed') ?? api.problemOf('not_found'), null, 2);
  const sections = codes.map((code) => section(code, operationsWith(api, code), api.operations().length));
  return `${INTRODUCTION.replace('EXAMPLE', () => example)}\n${overview(codes)}\n${sections.join('\n')}`;
}

function overview(codes) {
  const rows = codes.map((code) => {
    const { status, title, retryable } = ERROR_CATALOG[code];
    return `| ${status} | [\`${code}\`](#${code}) | ${title} | ${retryable ? 'yes' : 'no'} |`;
  });
  return `| status | code | title | retryable |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
}

function section(code, operations, all) {
  const advice = ERROR_ADVICE[code];
  if (advice === undefined)
    throw new Error(`scripts/generate/errors-page.mjs has no cause and cure for ${code}`);
  const { status, title, retryable } = ERROR_CATALOG[code];
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
