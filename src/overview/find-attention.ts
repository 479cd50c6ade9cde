import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, In } from 'typeorm';
import { ApiKeyEntity } from '../api-keys/index.js';
import type { Money } from '../common/money.js';
import type { PortalScope } from '../common/scopes.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { NOW } from '../infra/database/index.js';
import { OrderEntity } from '../orders/index.js';
import { RefundRequestEntity } from '../refunds/index.js';
import { WalletsRepository } from '../wallet/index.js';
import { type Cause, type ShownEndpoint } from '../webhooks/index.js';

export const ATTENTION_KINDS = [
  'endpoint_disabled',
  'endpoint_failing',
  'low_balance',
  'key_expiring',
  'order_needs_review',
  'refund_requested',
  'refund_decided',
] as const;
export type AttentionKind = (typeof ATTENTION_KINDS)[number];

/** Something that a person should know of. The other fields are those that the kind has. */
export interface AttentionItem {
  readonly kind: AttentionKind;
  /** Of several objects the first. */
  readonly subjectId: string;
  readonly since: Date;
  /** URL of an endpoint, or name of a key. */
  readonly name?: string | null;
  readonly cause?: Cause | null;
  /** Number of objects, or of an endpoint's waiting deliveries. */
  readonly count?: number;
  /** When a block ends, or a key expires. */
  readonly until?: Date | null;
  readonly available?: Money;
  readonly threshold?: Money;
}

/** As early as the alert of the portal team. */
const KEY_EXPIRES_WITHIN_DAYS = 7;
const DECISIONS_SHOWN_FOR_DAYS = 7;
/** Limits the decided requests that a search for recent decisions reads. */
const DECIDED_REQUESTS_OF_DAYS = 60;
/** More objects of one kind than a person counts. */
const MAX_COUNTED = 1_000;
const DAY_MS = 86_400_000;

/** Finds everything that needs attention in one mode, most urgent first. */
@Injectable()
export class FindAttention {
  private readonly reviewAfterMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly wallets: WalletsRepository,
    @Inject(APP_CONFIG) { provisioning }: Pick<AppConfig, 'provisioning'>,
  ) {
    this.reviewAfterMs = provisioning.needsReviewAfterMs;
  }

  /**
   * @param endpoints the partner's endpoints in the mode
   * @param may whether the session holds a scope; kinds that need another one are left out
   */
  async find(
    scope: TenantScope,
    endpoints: readonly ShownEndpoint[],
    may: (scope: PortalScope) => boolean,
  ): Promise<readonly AttentionItem[]> {
    return [
      ...(may('webhooks:read') ? endpointItems(endpoints) : []),
      ...(may('wallet:read') && scope.mode === 'live' ? await this.lowBalances(scope) : []),
      ...(may('keys:read') ? await this.expiringKeys(scope) : []),
      ...(may('orders:read') ? [...(await this.lateOrders(scope)), ...(await this.refunds(scope))] : []),
    ];
  }

  private async lowBalances({ partnerId }: TenantScope): Promise<AttentionItem[]> {
    const wallets = await this.wallets.listByPartner(partnerId);
    return wallets.flatMap(({ lowSince, lowBalanceAmount, posted, held, currency }) =>
      lowSince === null || lowBalanceAmount === null
        ? []
        : [
            {
              kind: 'low_balance' as const,
              subjectId: partnerId,
              since: lowSince,
              available: { amount: posted - held, currency },
              threshold: { amount: lowBalanceAmount, currency },
            },
          ],
    );
  }

  private async expiringKeys({ partnerId, mode }: TenantScope): Promise<AttentionItem[]> {
    const keys = await this.manager
      .createQueryBuilder(ApiKeyEntity, 'k')
      .where({ partnerId, mode })
      .andWhere(`k.revoked_at IS NULL AND k.replaced_by IS NULL AND k.expires_at > ${NOW}`)
      .andWhere(`k.expires_at <= ${NOW} + :days * interval '1 day'`, { days: KEY_EXPIRES_WITHIN_DAYS })
      .orderBy('k.expires_at')
      .getMany();
    return keys.map(({ id, name, expiresAt }) => ({
      kind: 'key_expiring',
      subjectId: id,
      name,
      since: new Date(expiresAt!.getTime() - KEY_EXPIRES_WITHIN_DAYS * DAY_MS),
      until: expiresAt,
    }));
  }

  /** Orders that have waited so long for the wholesaler that support looks at them. */
  private async lateOrders({ partnerId, mode }: TenantScope): Promise<AttentionItem[]> {
    const late = await this.manager
      .createQueryBuilder(OrderEntity, 't')
      .select(['t.id', 't.createdAt', 't.cancelRequestedAt'])
      .where({ partnerId, mode, status: In(['processing', 'canceling']) })
      .andWhere(`coalesce(t.cancel_requested_at, t.created_at) <= ${NOW} - :ms * interval '1 millisecond'`, {
        ms: this.reviewAfterMs,
      })
      .orderBy('t.created_at')
      .limit(MAX_COUNTED)
      .getMany();
    return grouped('order_needs_review', late, (order) => order.cancelRequestedAt ?? order.createdAt);
  }

  private async refunds({ partnerId, mode }: TenantScope): Promise<AttentionItem[]> {
    const ofStatus = (...statuses: readonly string[]) =>
      this.manager
        .createQueryBuilder(RefundRequestEntity, 't')
        .where({ partnerId, mode, status: In(statuses) })
        .limit(MAX_COUNTED);
    const pending = await ofStatus('pending').orderBy('t.created_at').getMany();
    const decided = await ofStatus('approved', 'rejected')
      .andWhere(`t.created_at > ${NOW} - :requested * interval '1 day'`, {
        requested: DECIDED_REQUESTS_OF_DAYS,
      })
      .andWhere(`t.decided_at > ${NOW} - :decided * interval '1 day'`, { decided: DECISIONS_SHOWN_FOR_DAYS })
      .orderBy('t.decided_at', 'DESC')
      .getMany();
    return [
      ...grouped('refund_requested', pending, ({ createdAt }) => createdAt),
      ...grouped('refund_decided', decided, ({ decidedAt }) => decidedAt!),
    ];
  }
}

/** One item for several objects, with the id and the time of the first. */
function grouped<T extends { readonly id: string }>(
  kind: AttentionKind,
  [first, ...others]: readonly T[],
  sinceOf: (item: T) => Date,
): AttentionItem[] {
  return first ? [{ kind, subjectId: first.id, since: sinceOf(first), count: others.length + 1 }] : [];
}

/** A disabled endpoint comes first, then those that fail; one that a person switched off needs no attention. */
function endpointItems(endpoints: readonly ShownEndpoint[]): AttentionItem[] {
  const items = endpoints.flatMap(({ endpoint, figures }): AttentionItem[] => {
    const { id: subjectId, url: name, enabled, disabledReason } = endpoint;
    const common = { subjectId, name, cause: figures.failing?.cause ?? null, count: figures.waiting };
    if (!enabled) {
      const since = endpoint.disabledAt ?? endpoint.updatedAt;
      return disabledReason === 'manual' ? [] : [{ kind: 'endpoint_disabled', ...common, since }];
    }
    if (!figures.failing) return [];
    const until = endpoint.blocked ? endpoint.blockedUntil : null;
    return [{ kind: 'endpoint_failing', ...common, since: figures.failing.since, until }];
  });
  return items.toSorted((a, b) => ATTENTION_KINDS.indexOf(a.kind) - ATTENTION_KINDS.indexOf(b.kind));
}
