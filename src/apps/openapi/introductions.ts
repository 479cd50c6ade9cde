/** The text at the top of the partner document. */
export const PARTNER_INTRODUCTION = `Catalogue, orders, eSIMs and events for partners.

- **Modes.** The key decides: \`svc_sk_test_...\` works on Sandbox (mock data, no charges), \`svc_sk_live_...\` on Live.
- **Answers.** \`{ "request_id", "data" }\`; lists add \`has_more\` and \`next_cursor\`. \`X-Request-Id\` repeats the id.
- **Errors.** \`application/problem+json\`; branch on \`code\`. Unknown fields and parameters are refused.
- **Idempotency.** Every POST needs an \`Idempotency-Key\` of 8 to 128 letters, digits, \`-\` or \`_\`. A retry with the
  same key and request within 24 hours gets the original answer, with \`Idempotent-Replayed: true\`.
- **Limits.** 60 requests per minute and key, bursts up to 120; beyond that 429 with \`Retry-After\`.
- **Values.** Times are RFC 3339 in UTC with milliseconds. Money is \`{ "amount", "currency" }\` in integer minor units.
  Data is in bytes, 1 GB = 10^9; null when unlimited.
- **Growth.** Answers may get new fields and new values of an enumeration; ignore what you do not know.`;

/** The text at the top of the admin document. */
export const ADMIN_INTRODUCTION = `The internal API of the portal team; never routed publicly.

- **Who calls.** A token of \`ADMIN_TOKENS\`; its name and the optional \`X-Actor\` go to the audit log.
- **Answers, errors, lists** are those of the partner API. \`Idempotency-Key\` is honoured on a POST when it is sent.
- **Shown once.** A key or signing secret is in the answer that made it, and null when that answer is replayed.`;
