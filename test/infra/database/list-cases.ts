import type { DataSource } from 'typeorm';
import { AlertsRepository, type AlertFilters } from '../../../src/alerts/alerts.repository.js';
import { ApiKeysRepository } from '../../../src/api-keys/api-keys.repository.js';
import { AuditRepository, type AuditFilters } from '../../../src/audit/audit.repository.js';
import {
  CallLogRepository,
  type CallFilters,
  SEARCHED_AT_ONCE,
} from '../../../src/call-log/call-log.repository.js';
import { MODES } from '../../../src/common/mode.js';
import type { Page } from '../../../src/common/page.js';
import { PORTAL_SCOPES } from '../../../src/common/scopes.js';
import { EsimsRepository, type EsimFilters } from '../../../src/esims/esims.repository.js';
import { EventsRepository } from '../../../src/events/events.repository.js';
import type { CursorCodec } from '../../../src/infra/crypto/index.js';
import { KeysetPages, type ListOptions } from '../../../src/infra/database/index.js';
import { InstallLinksRepository } from '../../../src/install-links/install-links.repository.js';
import type { OrderFilters } from '../../../src/orders/order.js';
import { OrdersRepository } from '../../../src/orders/orders.repository.js';
import { FindAttention } from '../../../src/overview/find-attention.js';
import { GoLiveChecklist } from '../../../src/overview/go-live-checklist.js';
import { PartnersRepository } from '../../../src/partners/partners.repository.js';
import { PortalSessionsRepository } from '../../../src/portal-sessions/portal-sessions.repository.js';
import {
  type RefundFilters,
  RefundRequestsRepository,
} from '../../../src/refunds/refund-requests.repository.js';
import { OrdersNeedingReview, TopupsNeedingReview } from '../../../src/support/needs-review.js';
import type { TopupFilters } from '../../../src/topups/topup.js';
import { TopupsRepository } from '../../../src/topups/topups.repository.js';
import { WalletsRepository } from '../../../src/wallet/wallets.repository.js';
import {
  type DeliveryFilters,
  WebhookDeliveriesRepository,
} from '../../../src/webhooks/webhook-deliveries.repository.js';
import { WebhookEndpointsRepository } from '../../../src/webhooks/webhook-endpoints.repository.js';
import { BUSY_ENDPOINT, BUSY_ESIM, DAYS, LONG_AGO, PARTNER, RARE, RARE_ORDER } from './list-rows.js';

/** One list with its filters, whose reads must be in proportion to the page. */
export interface ListCase {
  readonly name: string;
  /** Maximum number of rows in index and table, if more than about a page. A sequential scan is never allowed. */
  readonly mostRows?: number;
  run(options: ListOptions): Promise<Page<unknown>>;
}

/** All values to try for each filter. A new filter without one does not compile. */
type Samples<Filters> = { readonly [Name in keyof Required<Filters>]: readonly Required<Filters>[Name][] };

/** Ids start with their time: one subject of the oldest rows, 61 days ago, and one that was just created. */
const SUBJECTS = [
  { id: 'ord_old', orderId: RARE_ORDER, since: new Date(LONG_AGO.getTime() - 2 * 86_400_000) },
  { id: 'ord_new', orderId: 'ord_1', since: new Date(Date.now() - 3_600_000) },
  { id: 'ord_none', orderId: 'ord_none', since: new Date(0) },
];
const CREATED = { createdAfter: [LONG_AGO], createdBefore: [LONG_AGO] };
const ORDERS: Samples<OrderFilters> = {
  status: ['issued', 'failed', 'canceled'],
  reference: [RARE, 'unknown'],
  ...CREATED,
};
const ESIMS: Samples<EsimFilters> = {
  status: ['issued', 'expired', 'suspended'],
  orderId: [RARE, 'unknown'],
  iccid: [RARE, 'unknown'],
  label: [RARE, 'unknown'],
};
const TOPUPS: Samples<TopupFilters> = {
  status: ['completed', 'failed', 'processing'],
  reference: [RARE, 'unknown'],
  esimId: [RARE, 'unknown'],
};
const REFUNDS: Samples<RefundFilters> = {
  status: ['pending', 'approved'],
  esimId: [RARE, 'unknown'],
};
const DELIVERIES: Samples<DeliveryFilters> = {
  status: ['pending', 'delivered', 'failed', 'held', 'discarded'],
  eventType: ['order.issued', 'esim.expired', 'webhook.test'],
  eventId: [RARE, 'unknown'],
  statusCode: [200, 204, 500],
  outcome: ['delivered', 'failed', 'interrupted'],
  ...CREATED,
};
const AUDIT: Samples<AuditFilters> = {
  partnerId: [PARTNER, RARE, 'unknown'],
  subjectId: [RARE, 'unknown'],
  actor: ['portal', RARE, 'unknown'],
  action: ['key.created', RARE, 'unknown'],
  ...CREATED,
};
const ALERTS: Samples<AlertFilters> = {
  type: ['endpoint.blocked', 'balance.low', 'key.expiring'],
  state: ['open', 'resolved'],
  partnerId: [PARTNER, RARE, 'unknown'],
  subjectId: [RARE, 'unknown'],
  ...CREATED,
};
const CALLS: Samples<CallFilters> = {
  requestId: ['unknown'],
  keyId: ['busy', RARE, 'unknown'],
  method: ['GET', 'POST', 'unknown'],
  route: ['/v1/orders', RARE, 'unknown'],
  status: [200, 201, 404, 500],
  errorCode: ['not_found', 'internal_error'],
  mode: ['sandbox', 'live'],
  replayOf: [RARE, 'unknown'],
  ...CREATED,
  otherThanRoute: ['/v1/requests'],
};

/**
 * The list without filters, with each value of each filter, and with every two filters. Two common values may be a rare
 * combination, for which there is no index and which the list timeout aborts.
 */
function casesOf<Filters>(
  list: string,
  samples: Samples<Filters>,
  run: (filters: Filters, options: ListOptions) => Promise<Page<unknown>>,
): ListCase[] {
  const names = Object.keys(samples) as (keyof Filters)[];
  const none = Object.fromEntries(names.map((name) => [name, undefined]));
  const filtered = names.flatMap((name) => samples[name].map((value) => ({ [name]: value })));
  const pairs = names.flatMap((one, index) =>
    names.slice(index + 1).map((other) => ({ [one]: samples[one][0], [other]: samples[other].at(-1) })),
  );
  const caseOf = (chosen: object): ListCase => ({
    name: `${list} ${JSON.stringify(chosen)}`,
    run: (options) => run({ ...none, ...chosen } as Filters, options),
  });
  return [
    ...[{}, ...filtered].map(caseOf),
    ...pairs.map((chosen) => ({ ...caseOf(chosen), mostRows: Infinity })),
  ];
}

/** Reads that return one page and no cursor. */
function lookup(name: string, read: (limit: number) => Promise<unknown>, mostRows?: number): ListCase {
  const run = async ({ limit }: ListOptions): Promise<Page<unknown>> => {
    await read(limit);
    return { items: [], hasMore: false, nextCursor: null };
  };
  return { name, run, ...(mostRows === undefined ? {} : { mostRows }) };
}

/** The lists of all repositories, by source file. */
export function listCases(dataSource: DataSource, cursors: CursorCodec): ListCase[] {
  const { manager } = dataSource;
  const pages = new KeysetPages(cursors);
  const live = { partnerId: PARTNER, mode: 'live' } as const;
  const sandbox = { partnerId: PARTNER, mode: 'sandbox' } as const;
  const both = { partnerId: PARTNER };
  const config = { provisioning: { needsReviewAfterMs: 900_000 } } as never;
  const orders = new OrdersRepository(manager, pages);
  const esims = new EsimsRepository(manager, pages);
  const topups = new TopupsRepository(manager, pages);
  const events = new EventsRepository(manager, pages);
  const keys = new ApiKeysRepository(manager, pages);
  const partners = new PartnersRepository(manager, pages);
  const endpoints = new WebhookEndpointsRepository(manager, pages);
  const deliveries = new WebhookDeliveriesRepository(manager, pages);
  const refunds = new RefundRequestsRepository(manager, pages);
  const wallets = new WalletsRepository(manager, pages);
  const types = { type: [undefined, 'order.issued', 'esim.expired', 'esim.activated'] } as const;
  const modes = { mode: [undefined, 'sandbox', 'live'] } as const;
  const perMode = [live, sandbox, both].flatMap((scope) => {
    const whose = 'mode' in scope ? scope.mode : 'both modes';
    return [
      ...casesOf(`orders (${whose})`, ORDERS, (filters, options) => orders.list(scope, filters, options)),
      ...casesOf(`esims (${whose})`, ESIMS, (filters, options) => esims.list(scope, filters, options)),
      ...casesOf(`topups (${whose})`, TOPUPS, (filters, options) => topups.list(scope, filters, options)),
    ];
  });
  return [
    ...perMode,
    ...[live, sandbox].flatMap((scope) =>
      casesOf(`feed (${scope.mode})`, { ...types, subject: SUBJECTS }, async (filters, { limit }) => {
        await events.listAfter(scope, 0, filters, limit + 1);
        return { items: [], hasMore: false, nextCursor: null };
      }),
    ),
    ...casesOf('events', types, ({ type }, options) =>
      events.listOfPartner({ partnerId: PARTNER }, type, options),
    ),
    ...casesOf('keys', modes, ({ mode }, options) => keys.list(PARTNER, mode, options)),
    ...casesOf('partners', { status: ['active', 'suspended'] } as const, ({ status }, options) =>
      partners.list({ status }, options),
    ),
    ...casesOf('endpoints', { status: ['enabled', 'blocked', 'disabled'] } as const, ({ status }, options) =>
      endpoints.listAll(status, options),
    ),
    ...casesOf('portal sessions', {}, (_none, options) =>
      new PortalSessionsRepository(manager, pages).list(PARTNER, options),
    ),
    ...casesOf('endpoints of a partner', {}, (_none, options) =>
      endpoints.listOfPartner({ partnerId: PARTNER }, options),
    ),
    ...casesOf('deliveries', DELIVERIES, (filters, options) =>
      deliveries.list({ id: BUSY_ENDPOINT, mode: 'live' }, filters, options),
    ),
    ...casesOf('transactions', {}, (_none, options) => wallets.listTransactions(PARTNER, options)),
    ...casesOf('audit log', AUDIT, (filters, options) =>
      new AuditRepository(manager, pages).list(filters, options),
    ),
    ...casesOf('alerts', ALERTS, (filters, options) =>
      new AlertsRepository(manager, pages).list(filters, options),
    ),
    ...casesOf(
      'calls',
      CALLS,
      (filters, options) => new CallLogRepository(manager, pages).list(PARTNER, filters, options),
      // Merging the days reads the first row of each.
    ).map((call) => ({ mostRows: 2 * (SEARCHED_AT_ONCE + DAYS), ...call })),
    ...casesOf('refund requests', REFUNDS, (filters, options) =>
      refunds.list({ partnerId: PARTNER, mode: 'live' }, filters, options),
    ),
    ...casesOf('refund requests of all partners', REFUNDS, (filters, options) =>
      refunds.listOfAll(filters, options),
    ),
    ...casesOf('install links of an eSIM', {}, (_none, options) =>
      new InstallLinksRepository(manager, pages).list(live, BUSY_ESIM, options),
    ),
    ...[RARE_ORDER, 'ord_none'].map((orderId) =>
      lookup(`latest events of ${orderId}`, (limit) =>
        events.listOfOrder(live, { orderId, since: new Date(0) }, limit),
      ),
    ),
    ...[live, sandbox].map((scope) =>
      lookup(`deliveries of events (${scope.mode})`, (limit) =>
        deliveries.listOfEvents(scope, [RARE, 'unknown'], limit),
      ),
    ),
    lookup('top-ups of eSIMs', (limit) => topups.listOfEsims([RARE, 'unknown'], limit)),
    lookup('refund requests of eSIMs', (limit) => refunds.listOfEsims([RARE, 'unknown'], limit)),
    ...[null, live].flatMap((scope) => [
      lookup('orders with a reference', (limit) => orders.listByReference(RARE, scope, limit)),
      lookup('top-ups with a reference', (limit) => topups.listByReference(RARE, scope, limit)),
      lookup('eSIMs with an ICCID', (limit) => esims.listByIccid(RARE, scope, limit)),
    ]),
    lookup('partners by the start of a name', (limit) => partners.listByPrefix('X19', limit)),
    lookup('partners by an unknown name', (limit) => partners.listByPrefix('nobody', limit)),
    lookup('what needs attention', () =>
      new FindAttention(manager, wallets, config).find(live, [], () => true),
    ),
    lookup('the go-live checklist', () =>
      new GoLiveChecklist(manager).check(PARTNER, [], { modes: MODES, scopes: PORTAL_SCOPES }),
    ),
    lookup('the balances and the spending of a wallet', async () => {
      for (const wallet of await wallets.listByPartner(PARTNER)) {
        await wallets.listBalances(wallet, 1, 86_400);
        await wallets.getDailySpending(wallet, 7);
      }
    }),
    lookup('an event', () => events.findOfAny('evt_unknown')),
    lookup('a call', () => new CallLogRepository(manager, pages).findByRequestId('unknown')),
    ...casesOf('orders that need review', {}, (_none, options) =>
      new OrdersNeedingReview(manager, cursors, config).list(options),
    ),
    ...casesOf('top-ups that need review', {}, (_none, options) =>
      new TopupsNeedingReview(manager, cursors, config).list(options),
    ),
  ];
}
