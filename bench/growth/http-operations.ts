import { randomUUID } from 'node:crypto';
import { Agent, request } from 'undici';
import type { GrowthBed } from './bed.js';
import { endpointSlot, keySlot, ownedId } from './fill-sql.js';
import type { Operation } from './operation.js';
import { BIG_PARTNER } from './scale.js';

const ORDER = JSON.stringify({ package_id: 'pkg_fr_1gb_7d', quantity: 1 });
const agent = new Agent({ connections: 4, pipelining: 1 });

interface Call {
  readonly url: string;
  readonly token: string;
  readonly body?: string;
}

/** @throws Error when the answer is a refusal */
async function send({ url, token, body }: Call): Promise<unknown> {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
  };
  const answer = await request(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    body: body ?? null,
    dispatcher: agent,
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${url}: ${answer.statusCode} ${text.slice(0, 200)}`);
  return JSON.parse(text);
}

/** What partners and the portal call: writes, reads by id, the feed, and each list with each of its filters. */
export async function httpOperations(bed: GrowthBed): Promise<readonly Operation[]> {
  return [
    ...orderOperations(bed),
    ...byId(bed),
    ...(await feed(bed)),
    ...partnerLists(bed),
    ...adminLists(bed),
  ];
}

function orderOperations({ api, keys }: GrowthBed): Operation[] {
  return (['sandbox', 'live'] as const).map((mode) => ({
    name: `POST /v1/orders (${mode})`,
    run: async () => {
      await send({ url: `${api.apiUrl}/v1/orders`, token: keys[mode], body: ORDER });
    },
  }));
}

/** A template with `{}` takes the ids in turn. */
function partnerGet(bed: GrowthBed, template: string, ids: readonly string[] = ['']): Operation {
  return get(`GET ${template}`, bed.api.apiUrl, bed.keys.live, template, ids);
}

function adminGet(bed: GrowthBed, template: string, ids: readonly string[] = ['']): Operation {
  const { adminUrl, adminToken } = bed.admin;
  const name = template.replace(bed.partnerId, ':pid').replace('/internal/v1', '');
  return get(`admin GET ${name}`, adminUrl, adminToken, `${template}`, ids);
}

function get(name: string, base: string, token: string, template: string, ids: readonly string[]): Operation {
  return {
    name,
    run: async (nth) => {
      await send({ url: base + template.replace('{}', ids[nth % ids.length]!), token });
    },
  };
}

function byId(bed: GrowthBed): Operation[] {
  const { picks } = bed;
  return [
    partnerGet(bed, '/v1/orders/{}', picks.orders),
    partnerGet(
      bed,
      '/v1/esims/{}',
      picks.esims.map(({ id }) => id),
    ),
    partnerGet(
      bed,
      '/v1/topups/{}',
      picks.topups.map(({ id }) => id),
    ),
    partnerGet(bed, '/v1/events/{}', picks.events),
    adminGet(
      bed,
      '/internal/v1/deliveries/{}',
      picks.deliveries.map(({ id }) => id),
    ),
    adminGet(bed, '/internal/v1/requests/{}', picks.calls),
  ];
}

/** A poller that is up to date, one that was away since yesterday, and both by a type. */
async function feed(bed: GrowthBed): Promise<Operation[]> {
  const yesterday = (
    await bed.query<{ id: string }>(
      `SELECT id FROM events_live WHERE partner_id = $1 AND id < growth.id('evt', (extract(epoch FROM now() - interval '1 day') * 1000)::bigint, 0)
       AND position IS NOT NULL ORDER BY id DESC LIMIT 1`,
      [bed.partnerId],
    )
  )[0]!.id;
  const operations: Operation[] = [];
  for (const type of ['', 'order.topup.failed']) {
    const filter = type === '' ? '' : `&type=${type}`;
    operations.push(partnerGet(bed, `/v1/events?limit=25&after={}${filter}`, [yesterday]));
    operations.push({
      ...partnerGet(bed, `/v1/events?limit=25&after={}${filter}`, [await newest(bed, filter)]),
    });
  }
  const names = ['after a cursor of yesterday', 'from now', 'rare type, of yesterday', 'rare type, from now'];
  return operations.map((operation, index) => ({ ...operation, name: `feed poll ${names[index]}` }));
}

/** The cursor of a poller that has read all. */
async function newest(bed: GrowthBed, filter: string): Promise<string> {
  const { id } = (
    await bed.query<{ id: string }>(
      `SELECT id FROM events_live WHERE partner_id = $1 AND position IS NOT NULL ORDER BY id DESC LIMIT 1`,
      [bed.partnerId],
    )
  )[0]!;
  const url = `${bed.api.apiUrl}/v1/events?limit=25&after=${id}${filter}`;
  const page = (await send({ url, token: bed.keys.live })) as { next_cursor: string };
  return page.next_cursor;
}

const LONG_AGO = new Date(Date.now() - 80 * 86_400_000).toISOString();
const SOON = new Date(Date.now() - 10 * 86_400_000).toISOString();

function partnerLists(bed: GrowthBed): Operation[] {
  const { picks } = bed;
  const filters: Readonly<Record<string, readonly string[]>> = {
    orders: [
      '',
      'status=issued',
      'status=failed',
      'status=processing',
      'status=canceled',
      `created_after=${SOON}`,
      `created_before=${LONG_AGO}`,
      'reference=unknown',
    ],
    esims: ['', 'status=active', 'status=expired', 'status=depleted', 'iccid=89100000000000000000'],
    topups: ['', 'status=completed', 'status=failed', 'status=processing', 'reference=unknown'],
    transactions: [''],
  };
  return [
    ...Object.entries(filters).flatMap(([list, queries]) =>
      queries.map((query) => partnerGet(bed, `/v1/${list}?limit=25&${query}`)),
    ),
    partnerGet(bed, '/v1/orders?limit=25&reference={}', picks.references),
    partnerGet(
      bed,
      '/v1/esims?limit=25&order_id={}',
      picks.esims.map((esim) => esim.order_id),
    ),
    partnerGet(
      bed,
      '/v1/esims?limit=25&iccid={}',
      picks.esims.map((esim) => esim.iccid),
    ),
    partnerGet(
      bed,
      '/v1/topups?limit=25&esim_id={}',
      picks.topups.map((topup) => topup.esim_id),
    ),
  ];
}

function adminLists(bed: GrowthBed): Operation[] {
  const partner = `/internal/v1/partners/${bed.partnerId}`;
  const endpoint = `${partner}/webhook-endpoints/${ownedId('whe', BIG_PARTNER, endpointSlot('live', 0))}`;
  const key = ownedId('key', BIG_PARTNER, keySlot('live'));
  const lists: Readonly<Record<string, readonly string[]>> = {
    [`${partner}/orders`]: ['', 'status=failed'],
    [`${partner}/esims`]: ['', 'status=depleted'],
    [`${partner}/topups`]: ['', 'status=failed'],
    [`${partner}/events`]: ['', 'type=esim.expired', 'type=order.topup.failed'],
    [`${partner}/wallet/transactions`]: [''],
    [`${partner}/webhook-endpoints`]: [''],
    [`${partner}/requests`]: [
      '',
      'status=500',
      'status=404',
      'method=POST',
      'route=/v1/orders',
      'mode=sandbox',
      `key_id=${key}`,
      `created_before=${SOON}`,
      'replay_of=unknown',
    ],
    [`${endpoint}/deliveries`]: [
      '',
      'status=delivered',
      'status=failed',
      'status=pending',
      'status=discarded',
      'event_type=esim.expired',
      'event_type=webhook.test',
      `created_before=${LONG_AGO}`,
      `event_id=${bed.picks.deliveries[0]!.event_id}`,
    ],
    '/internal/v1/partners': ['', 'status=suspended'],
    '/internal/v1/webhook-endpoints': ['', 'status=disabled', 'status=blocked'],
    '/internal/v1/alerts': ['', 'type=balance.low', `partner_id=${bed.partnerId}`, 'subject_id=unknown'],
    '/internal/v1/audit-log': [
      '',
      'action=partner.suspended',
      `partner_id=${bed.partnerId}`,
      'subject_id=unknown',
      'actor=unknown',
    ],
    '/internal/v1/orders/needs-review': [''],
    '/internal/v1/topups/needs-review': [''],
  };
  return Object.entries(lists).flatMap(([path, queries]) =>
    queries.map((query) => ({
      ...adminGet(bed, `${path}?limit=25&${query}`),
      name: `admin GET ${path.replace(endpoint, '…/:endpoint').replace(partner, '…').replace('/internal/v1', '')}?${query.replace(/=(ptn|key|evt)_.*/, '=')}`,
    })),
  );
}
