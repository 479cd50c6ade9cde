import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import {
  type EntityManager,
  In,
  IsNull,
  type QueryDeepPartialEntity,
  type SelectQueryBuilder,
} from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import type { PartnerScope } from '../common/tenant-scope.js';
import { KeysetPages, type ListOptions, NOW, sql, type Tx } from '../infra/database/index.js';
import { type EndpointStatus, WebhookEndpointEntity } from './webhook-endpoint.entity.js';

/** Names one endpoint of one partner; another partner's is not found (D14). */
export interface EndpointKey {
  readonly partnerId: string;
  readonly id: string;
}

type EndpointSettings = 'url' | 'description' | 'eventTypes' | 'usageLevels' | 'signatureSchemes';
export type NewEndpoint = Pick<
  WebhookEndpointEntity,
  'id' | 'partnerId' | 'mode' | 'secret' | EndpointSettings
>;
export type EndpointChange = Partial<Pick<WebhookEndpointEntity, EndpointSettings>>;

const STATUS_CONDITIONS: Record<EndpointStatus, string> = {
  enabled: 't.enabled AND coalesce(t.blocked_until <= statement_timestamp(), true)',
  blocked: `t.enabled AND t.blocked_until > ${NOW}`,
  disabled: 'NOT t.enabled',
};

/** SQL of `webhook_endpoints` for the portal team; the delivery engine's is in `worker/`. */
@Injectable()
export class WebhookEndpointsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async countOf(tx: Tx, partnerId: string, mode: Mode): Promise<number> {
    return tx.manager.countBy(WebhookEndpointEntity, { partnerId, mode, deletedAt: IsNull() });
  }

  async insert(tx: Tx, endpoint: NewEndpoint): Promise<void> {
    await tx.manager.insert(WebhookEndpointEntity, endpoint);
  }

  async find(key: EndpointKey, tx?: Tx): Promise<WebhookEndpointEntity | null> {
    const manager = tx?.manager ?? this.manager;
    return manager.findOneBy(WebhookEndpointEntity, { ...key, deletedAt: IsNull() });
  }

  /** Finds deleted endpoints too, because the delivery log outlives them. */
  async findEvenDeleted(key: EndpointKey): Promise<WebhookEndpointEntity | null> {
    return this.manager.findOneBy(WebhookEndpointEntity, { ...key });
  }

  /** The endpoints that still exist, by their ids. */
  async listExisting(ids: readonly string[]): Promise<ReadonlyMap<string, WebhookEndpointEntity>> {
    const found = await this.manager.findBy(WebhookEndpointEntity, {
      id: In([...new Set(ids)]),
      deletedAt: IsNull(),
    });
    return new Map(found.map((endpoint) => [endpoint.id, endpoint]));
  }

  /** Locks the endpoint against other changes, but not against new deliveries. */
  async findForChange(tx: Tx, key: EndpointKey): Promise<WebhookEndpointEntity | null> {
    return tx.manager.findOne(WebhookEndpointEntity, {
      where: { ...key, deletedAt: IsNull() },
      lock: { mode: 'for_no_key_update' },
    });
  }

  /**
   * Like `findForChange`, but also waits for transactions that create deliveries to the endpoint, while new ones wait
   * for this one. No transaction can then create a delivery to a deleted endpoint.
   */
  async findForDeletion(tx: Tx, key: EndpointKey): Promise<WebhookEndpointEntity | null> {
    return tx.manager.findOne(WebhookEndpointEntity, {
      where: { ...key, deletedAt: IsNull() },
      lock: { mode: 'pessimistic_write' },
    });
  }

  async listOfPartner(
    { partnerId, mode }: PartnerScope,
    options: ListOptions,
  ): Promise<Page<WebhookEndpointEntity>> {
    const query = this.notDeleted().andWhere('t.partner_id = :partnerId', { partnerId });
    // A partner has at most 20 per mode, so this needs no index.
    if (mode !== undefined) query.andWhere('t.mode = :mode', { mode });
    return this.pages.list(query, options);
  }

  async listAll(
    status: EndpointStatus | undefined,
    options: ListOptions,
  ): Promise<Page<WebhookEndpointEntity>> {
    const query = this.notDeleted();
    if (status !== undefined) query.andWhere(`(${STATUS_CONDITIONS[status]})`);
    return this.pages.list(query, options);
  }

  async update(tx: Tx, id: string, change: EndpointChange): Promise<void> {
    await this.set(tx, id, change);
  }

  /** Enables the endpoint (D32): resets the block count, ends an active block and begins a slow start. */
  async enable(tx: Tx, id: string): Promise<void> {
    await this.set(tx, id, {
      enabled: true,
      consecutiveBlocks: 0,
      blockedUntil: null,
      disabledReason: null,
      disabledAt: null,
      slowStartSince: () => NOW,
    });
  }

  /** Discards everything pending so far by updating one row, whatever the backlog's size (D32). */
  async giveUpBacklog(tx: Tx, id: string): Promise<void> {
    // Transaction time: deliveries created by this transaction are not older than the discard.
    await this.set(tx, id, { discardBefore: () => 'now()' });
  }

  async disable(tx: Tx, id: string): Promise<void> {
    await this.set(tx, id, {
      enabled: false,
      blockedUntil: null,
      disabledReason: 'manual',
      disabledAt: () => NOW,
    });
  }

  /** The current secret becomes the previous one for `graceSeconds`; with 0 it is removed at once (D29). */
  async rotateSecret(tx: Tx, id: string, sealed: string, graceSeconds: number): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE webhook_endpoints
       SET previous_secret = CASE WHEN $3::int > 0 THEN secret END,
           previous_secret_until = CASE WHEN $3::int > 0 THEN statement_timestamp() + $3::int * interval '1 second' END,
           secret = $2, updated_at = statement_timestamp()
       WHERE id = $1`,
      [id, sealed, graceSeconds],
    );
  }

  async finishRotation(tx: Tx, id: string): Promise<void> {
    await this.set(tx, id, { previousSecret: null, previousSecretUntil: null });
  }

  /** Keeps the row for the log, but removes its secrets and discards undelivered deliveries. */
  async markDeleted(tx: Tx, id: string): Promise<void> {
    await this.set(tx, id, {
      deletedAt: () => NOW,
      discardBefore: () => `'infinity'`,
      secret: '',
      previousSecret: null,
      previousSecretUntil: null,
    });
  }

  private async set(
    tx: Tx,
    id: string,
    change: QueryDeepPartialEntity<WebhookEndpointEntity>,
  ): Promise<void> {
    await tx.manager.update(WebhookEndpointEntity, { id }, change);
  }

  private notDeleted(): SelectQueryBuilder<WebhookEndpointEntity> {
    return this.manager.createQueryBuilder(WebhookEndpointEntity, 't').where('t.deleted_at IS NULL');
  }
}
