import { Injectable } from '@nestjs/common';
import type { AdminOrPortalPrincipal } from '../auth/index.js';
import { CallLogRepository } from '../call-log/index.js';
import { type IdPrefix, isId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import type { AdminScope } from '../common/scopes.js';
import type { ReadScope } from '../common/tenant-scope.js';
import { type EsimEntity, EsimsRepository } from '../esims/index.js';
import { EventsRepository } from '../events/index.js';
import { type OrderEntity, OrdersRepository } from '../orders/index.js';
import { type PartnerEntity, PartnersRepository } from '../partners/index.js';
import { RefundRequestsRepository } from '../refunds/index.js';
import { type TopupEntity, TopupsRepository } from '../topups/index.js';
import {
  deliveryStatus,
  WebhookDeliveriesRepository,
  WebhookEndpointsRepository,
} from '../webhooks/index.js';

export const HIT_TYPES = [
  'order',
  'esim',
  'topup',
  'refund_request',
  'event',
  'delivery',
  'endpoint',
  'request',
  'partner',
] as const;

/** An object that matches a search. */
export interface Hit {
  readonly type: (typeof HIT_TYPES)[number];
  readonly id: string;
  /** Null for a call that belongs to no partner. */
  readonly partnerId: string | null;
  /** Null for a partner, and for a call without a mode. */
  readonly mode: Mode | null;
  /** The text by which a person recognizes it. */
  readonly label: string;
  readonly status: string | null;
  readonly createdAt: Date;
}

/** Maximum number of hits. */
export const MAX_HITS = 20;

const ICCID = /^[0-9]{18,22}$/;

/**
 * Finds objects by id, ICCID, reference or partner. The form of the text decides where to look, and each look-up reads
 * one index. Support searches all partners, a portal session its own partner in its modes; each by its scopes.
 */
@Injectable()
export class Search {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly topups: TopupsRepository,
    private readonly refundRequests: RefundRequestsRepository,
    private readonly events: EventsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly calls: CallLogRepository,
    private readonly partners: PartnersRepository,
  ) {}

  /** By the prefix of the id, with the scope that the caller needs. */
  private readonly lookups: readonly IdLookup[] = [
    lookup('ord', 'orders:read', (id) => this.orders.findById(id), toOrderHit),
    lookup('esim', 'orders:read', async (id) => (await this.esims.findAllById([id]))[0], toEsimHit),
    lookup('top', 'orders:read', (id) => this.topups.findById(id), toTopupHit),
    lookup(
      'rfr',
      'orders:read',
      (id) => this.refundRequests.findById(id),
      (request) => ({
        ...common('refund_request', request),
        label: request.reason,
        status: request.status,
      }),
    ),
    lookup(
      'evt',
      'webhooks:read',
      (id) => this.events.findOfAny(id),
      (event) => ({
        ...common('event', event),
        label: event.type,
        status: null,
      }),
    ),
    lookup(
      'dlv',
      'webhooks:read',
      (id) => this.deliveries.find(id),
      (delivery) => ({
        ...common('delivery', delivery),
        label: delivery.eventType,
        status: deliveryStatus(delivery),
      }),
    ),
    lookup(
      'whe',
      'webhooks:read',
      async (id) => (await this.endpoints.listExisting([id])).get(id),
      (endpoint) => ({
        ...common('endpoint', endpoint),
        label: endpoint.url,
        status: endpoint.enabled ? 'enabled' : 'disabled',
      }),
    ),
    lookup(
      'req',
      'requests:read',
      (id) => this.calls.findByRequestId(id),
      (call) => ({
        ...common('request', call),
        label: `${call.method} ${call.path}`,
        status: String(call.status),
      }),
    ),
    lookup('ptn', 'partners:read', (id) => this.partners.findById(id), toPartnerHit),
  ];

  /** At most `MAX_HITS`; empty when nothing matches that the caller may see, and for an empty text. */
  async find(caller: AdminOrPortalPrincipal, text: string): Promise<readonly Hit[]> {
    // Every name begins with it.
    if (text === '') return [];
    const byId = await this.findById(caller, text);
    const hits = byId === null ? await this.findByText(caller, text) : [byId];
    return hits.slice(0, MAX_HITS);
  }

  private async findById(caller: AdminOrPortalPrincipal, id: string): Promise<Hit | null> {
    const found = this.lookups.find(({ prefix, scope }) => isId(prefix, id) && caller.holds(scope));
    const hit = (await found?.read(id)) ?? null;
    return hit !== null && isReached(caller, hit) ? hit : null;
  }

  private async findByText(caller: AdminOrPortalPrincipal, text: string): Promise<readonly Hit[]> {
    const partners = caller.holds('partners:read') ? await this.partners.listByPrefix(text, MAX_HITS) : [];
    if (!caller.holds('orders:read')) return partners.map(toPartnerHit);
    const scope: ReadScope | null = caller.anyMode;
    const digits = text.replaceAll(' ', '');
    const esims = ICCID.test(digits) ? await this.esims.listByIccid(digits, scope, MAX_HITS) : [];
    const orders = await this.orders.listByReference(text, scope, MAX_HITS);
    const topups = await this.topups.listByReference(text, scope, MAX_HITS);
    return [
      ...esims.map(toEsimHit),
      ...partners.map(toPartnerHit),
      ...orders.map(toOrderHit),
      ...topups.map(toTopupHit),
    ];
  }
}

interface IdLookup {
  readonly prefix: IdPrefix;
  readonly scope: AdminScope;
  readonly read: (id: string) => Promise<Hit | null>;
}

function lookup<T extends object>(
  prefix: IdPrefix,
  scope: AdminScope,
  find: (id: string) => Promise<T | null | undefined>,
  toHit: (found: T) => Hit,
): IdLookup {
  const read = async (id: string): Promise<Hit | null> => {
    const found = await find(id);
    return found ? toHit(found) : null;
  };
  return { prefix, scope, read };
}

interface Row {
  readonly id: string;
  readonly partnerId: string | null;
  readonly mode: Mode | null;
  readonly createdAt: Date;
}

function common(
  type: Hit['type'],
  { id, partnerId, mode, createdAt }: Row,
): Pick<Hit, 'type' | 'id' | 'partnerId' | 'mode' | 'createdAt'> {
  return { type, id, partnerId, mode, createdAt };
}

function toOrderHit(order: OrderEntity): Hit {
  return { ...common('order', order), label: order.reference ?? order.packageId, status: order.status };
}

function toEsimHit(esim: EsimEntity): Hit {
  return { ...common('esim', esim), label: esim.iccid, status: esim.status };
}

function toTopupHit(topup: TopupEntity): Hit {
  return { ...common('topup', topup), label: topup.reference ?? topup.packageId, status: topup.status };
}

function toPartnerHit({ id, name, status, createdAt }: PartnerEntity): Hit {
  return { type: 'partner', id, partnerId: id, mode: null, label: name, status, createdAt };
}

/** Whether the caller may see the hit: in a portal session, of its partner and in one of its modes. */
function isReached({ anyMode }: AdminOrPortalPrincipal, { partnerId, mode }: Hit): boolean {
  if (anyMode === null) return true;
  return partnerId === anyMode.partnerId && (mode === null || anyMode.mode.includes(mode));
}
