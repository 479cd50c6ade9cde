import type { ApiError } from './partner-api.js';

/** Hint for a key that is not accepted. */
export const KEY_CURE =
  'Run `esim login`, or set ESIM_API_KEY. Check also that the key belongs to this API (--base-url, ESIM_BASE_URL).';

/** Hints by error code. A code with a self-explanatory message has none. */
const HINTS: Readonly<Partial<Record<ApiError['code'], string | ((error: ApiError) => string | undefined)>>> =
  {
    unauthorized: KEY_CURE,
    not_found: notFoundHint,
    not_supported: '`esim esims get <esim>` shows its actions, and the action that is pending.',
    order_not_cancelable: '`esim refunds create <esim>` requests a refund.',
    reference_taken: ({ call }) =>
      call.path === '/v1/topups'
        ? 'GET /v1/topups?reference=… shows the top-up with this reference.'
        : '`esim orders list --reference <text>` shows the order with this reference.',
    insufficient_balance:
      '`esim open balance` shows your balance. After a deposit, buy with a new idempotency key.',
    spend_limit_reached:
      'The limit resets at 00:00 UTC. After that, or with another key, buy without --idempotency-key.',
    price_changed: '`esim catalog` shows the current price. Then buy without --idempotency-key.',
    package_unavailable:
      '`esim catalog` shows which packages are available. Then buy without --idempotency-key.',
    topup_not_supported: '`esim topups packages <esim>` lists the packages that fit this eSIM.',
    esim_not_ready:
      '`esim esims get <esim>` shows its status. When the status allows it, buy without --idempotency-key.',
    esim_expired: 'You cannot top up an expired eSIM. `esim orders place` buys a new one.',
    idempotency_key_reused:
      'This key belongs to another purchase. Repeat that purchase unchanged, or omit --idempotency-key for a new one.',
  };

/** How to find the missing object, by path of the purchase. */
const MISSING: Readonly<Record<string, string>> = {
  '/v1/orders': '`esim catalog` lists packages.',
  '/v1/topups':
    '`esim esims list` lists eSIMs. `esim topups packages <esim>` lists the packages that fit one.',
  '/v1/refund-requests': '`esim esims list` lists eSIMs.',
};

/** The command that lists the valid ids of a collection. */
const LISTED_BY: Readonly<Record<string, string>> = {
  orders: 'esim orders list',
  esims: 'esim esims list',
  'refund-requests': 'esim refunds list',
  events: 'esim events list --newest',
};
const KEYS = { sandbox: 'Sandbox', live: 'Live' } as const;

function notFoundHint({ call: { method, path, mode } }: ApiError): string | undefined {
  if (method === 'POST' && path in MISSING) return MISSING[path];
  if (path.endsWith('/auto-topup'))
    return '`esim esims auto-topup <esim> --package <package>` sets one. `esim esims list` lists your eSIMs.';
  const [, collection = '', id] = /^\/v1\/(?:sandbox\/)?([\w-]+)\/([^/]+)/.exec(path) ?? [];
  if (id === undefined || mode === null) return undefined;
  const other =
    mode === 'sandbox' ? 'A Live object needs a Live key (--live).' : 'A Sandbox object needs a Sandbox key.';
  const list = LISTED_BY[collection];
  return `This ${KEYS[mode]} key cannot see ${decodeURIComponent(id)}. ${other}${list === undefined ? '' : ` \`${list}\` lists what it can see.`}`;
}

/** @returns one line that says what to do next, or undefined */
export function hintFor(error: ApiError): string | undefined {
  const hint = HINTS[error.code];
  const said = typeof hint === 'function' ? hint(error) : hint;
  return error.call.mode === 'live' && said !== KEY_CURE ? withLive(said) : said;
}

/** Adds `--live` to every command in a hint. */
function withLive(hint: string | undefined): string | undefined {
  return hint?.replaceAll(/`(esim [^`]+)`/g, '`$1 --live`');
}
