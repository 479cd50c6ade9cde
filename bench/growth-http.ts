import type { GrowthBed, Operation } from './growth.js';
import { BIG_PARTNER, endpointSlot, keySlot, ownedId } from './growth-tables.js';
import { ORDER, ORDERS_PATH, sendOk } from './shared/http.js';

const DAY_MS = 86_400_000;
const LONG_AGO = new Date(Date.now() - 80 * DAY_MS).toISOString();
const SOON = new Date(Date.now() - 10 * DAY_MS).toISOString();

/** Query strings of the partner's lists, one per filter. */
const PARTNER_LISTS: Readonly<Record<string, readonly string[]>> = {
  orders: [
    ...['', 'status=issued', 'status=failed', 'status=processing', 'status=canceled'],
    ...[`created_after=${SOON}`, `created_before=${LONG_AGO}`, 'reference=unknown'],
  ],
  esims: ['', 'status=active', 'status=expired', 'status=depleted', 'iccid=89100000000000000000'],
  topups: ['', 'status=completed', 'status=failed', 'status=processing', 'reference=unknown'],
  transactions: [''],
};

/** Calls of partners and of the portal: writes, reads by id, feed polls, and each list with each of its filters. */
export async function httpOperations(bed: GrowthBed): Promise<readonly Operation[]> {
  const { api, admin, keys, picks } = bed;
  /** Replaces `{}` in the template with the ids in turn. */
  const get =
    (base: string, token: string, prefix: string) =>
    (template: string, ids: readonly string[] = [''], name = template): Operation => ({
      name: prefix + name,
      run: (nth) => sendOk(base + template.replace('{}', ids[nth % ids.length]!), token),
    });
  const partner = get(api.apiUrl, keys.live, 'GET ');
  const office = get(admin.adminUrl, admin.adminToken, 'admin GET ');
  const idsOf = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);
  return [
    ...(['sandbox', 'live'] as const).map((mode) => ({
      name: `POST ${ORDERS_PATH} (${mode})`,
      run: () => sendOk(api.apiUrl + ORDERS_PATH, keys[mode], ORDER),
    })),
    partner('/v1/orders/{}', picks.orders),
    partner('/v1/esims/{}', idsOf(picks.esims)),
    partner('/v1/topups/{}', idsOf(picks.topups)),
    partner('/v1/events/{}', picks.events),
    office('/internal/v1/deliveries/{}', idsOf(picks.deliveries), '/deliveries/{}'),
    office('/internal/v1/requests/{}', picks.calls, '/requests/{}'),
    ...(await feedPolls(bed)).map(([name, url]) => ({ ...partner(url), name })),
    ...Object.entries(PARTNER_LISTS).flatMap(([list, queries]) =>
      queries.map((query) => partner(`/v1/${list}?limit=25&${query}`)),
    ),
    partner('/v1/orders?limit=25&reference={}', picks.references),
    partner(
      '/v1/esims?limit=25&order_id={}',
      picks.esims.map((esim) => esim.order_id),
    ),
    partner(
      '/v1/esims?limit=25&iccid={}',
      picks.esims.map((esim) => esim.iccid),
    ),
    partner(
      '/v1/topups?limit=25&esim_id={}',
      picks.topups.map((topup) => topup.esim_id),
    ),
    ...adminLists(bed).map(([name, url]) => office(url, [''], name)),
  ];
}

/** Polls from yesterday's cursor and from the newest one, each with and without a rare event type. */
async function feedPolls(bed: GrowthBed): Promise<(readonly [name: string, url: string])[]> {
  const newestBefore = async (before: string): Promise<string> => {
    const [event] = await bed.query<{ id: string }>(
      `SELECT id FROM events_live WHERE partner_id = $1 AND position IS NOT NULL
         AND id < growth.id('evt', (extract(epoch FROM now() - $2::interval) * 1000)::bigint, 0)
       ORDER BY id DESC LIMIT 1`,
      [bed.partnerId, before],
    );
    return event!.id;
  };
  const [yesterday, newest] = [await newestBefore('1 day'), await newestBefore('0')];
  const polls: (readonly [string, string])[] = [];
  for (const [name, filter] of [
    ['', ''],
    ['rare type, ', '&type=order.topup.failed'],
  ]) {
    const url = (cursor: string): string => `/v1/events?limit=25&after=${cursor}${filter}`;
    const page = await sendOk<{ next_cursor: string }>(bed.api.apiUrl + url(newest), bed.keys.live);
    polls.push([`feed poll ${name}from yesterday's cursor`, url(yesterday)]);
    polls.push([`feed poll ${name}from now`, url(page.next_cursor)]);
  }
  return polls;
}

/** @returns the name and URL of each admin API list with each of its filters */
function adminLists({ partnerId, picks }: GrowthBed): (readonly [name: string, url: string])[] {
  const partner = `/internal/v1/partners/${partnerId}`;
  const endpoint = `${partner}/webhook-endpoints/${ownedId('whe', BIG_PARTNER, endpointSlot('live', 0))}`;
  const lists: Readonly<Record<string, readonly string[]>> = {
    [`${partner}/orders`]: ['', 'status=failed'],
    [`${partner}/esims`]: ['', 'status=depleted'],
    [`${partner}/topups`]: ['', 'status=failed'],
    [`${partner}/events`]: ['', 'type=esim.expired', 'type=order.topup.failed'],
    [`${partner}/wallet/transactions`]: [''],
    [`${partner}/webhook-endpoints`]: [''],
    [`${partner}/requests`]: [
      ...['', 'status=500', 'status=404', 'method=POST', 'route=/v1/orders', 'mode=sandbox'],
      ...[
        `key_id=${ownedId('key', BIG_PARTNER, keySlot('live'))}`,
        `created_before=${SOON}`,
        'replay_of=unknown',
      ],
    ],
    [`${endpoint}/deliveries`]: [
      ...['', 'status=delivered', 'status=failed', 'status=pending', 'status=discarded'],
      ...['event_type=esim.expired', 'event_type=webhook.test', `created_before=${LONG_AGO}`],
      `event_id=${picks.deliveries[0]!.event_id}`,
    ],
    '/internal/v1/partners': ['', 'status=suspended'],
    '/internal/v1/webhook-endpoints': ['', 'status=disabled', 'status=blocked'],
    '/internal/v1/alerts': ['', 'type=balance.low', `partner_id=${partnerId}`, 'subject_id=unknown'],
    '/internal/v1/audit-log': [
      ...['', 'action=partner.suspended', `partner_id=${partnerId}`, 'subject_id=unknown', 'actor=unknown'],
    ],
    '/internal/v1/orders/needs-review': [''],
    '/internal/v1/topups/needs-review': [''],
  };
  const short = (text: string): string =>
    text.replace(endpoint, '…/:endpoint').replace(partner, '…').replace('/internal/v1', '');
  return Object.entries(lists).flatMap(([path, queries]) =>
    queries.map(
      (query) =>
        [`${short(path)}?${query.replace(/=(ptn|key|evt)_.*/, '=')}`, `${path}?limit=25&${query}`] as const,
    ),
  );
}
