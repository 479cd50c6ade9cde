import { ERROR_CATALOGUE } from '../../src/common/errors/error-catalogue.ts';
import { ERROR_ADVICE } from './error-advice.mjs';

const INTRODUCTION = `# Errors

<!-- Written by \`npm run docs\`: causes and cures from scripts/docs/error-advice.mjs, the rest from the code. -->

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
  if (strays.length > 0) throw new Error(`scripts/docs/error-advice.mjs: no such code ${strays.join(', ')}`);
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
  if (advice === undefined) throw new Error(`scripts/docs/error-advice.mjs says nothing of ${code}`);
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
