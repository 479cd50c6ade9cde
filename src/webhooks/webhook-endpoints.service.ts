import { Injectable } from '@nestjs/common';
import { type AuditEntry, AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import { SecretBox } from '../infra/crypto/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../infra/jobs/index.js';
import { PartnersService } from '../partners/index.js';
import { type BacklogChoice, BacklogJobs } from './backlog-jobs.js';
import { DELIVERY_JOBS } from './delivery-fan-out.js';
import { newSigningSecret } from './signature.js';
import { subscriptionsOf } from './subscriptions.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import {
  type EndpointChange,
  type EndpointKey,
  type NewEndpoint,
  WebhookEndpointsRepository,
} from './webhook-endpoints.repository.js';

/** Maximum number of endpoints per partner and mode (decisions, Changes). */
export const MAX_ENDPOINTS = 20;

export type NewEndpointTerms = Omit<NewEndpoint, 'id' | 'secret'>;

/** An endpoint with its secret, for the one response that shows it. */
export interface EndpointWithSecret {
  readonly endpoint: WebhookEndpointEntity;
  readonly secret: string;
}

/**
 * Registers, finds, changes, switches and deletes webhook endpoints, and rotates their secrets. Deleted endpoints and
 * other partners' are the same 404 (D14). No change resets status, count or attempts (decisions, Changes). Every write
 * is audited in its transaction.
 */
@Injectable()
export class WebhookEndpointsService {
  constructor(
    private readonly partners: PartnersService,
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly deliveries: WebhookDeliveriesRepository,
    private readonly backlog: BacklogJobs,
    private readonly secrets: SecretBox,
    private readonly audit: AuditLog,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound */
  async getById(key: EndpointKey, tx?: Tx): Promise<WebhookEndpointEntity> {
    return found(await this.endpoints.find(key, tx));
  }

  /** The endpoint, locked against other changes until the end of `tx`. @throws NotFound */
  async getForChange(tx: Tx, key: EndpointKey): Promise<WebhookEndpointEntity> {
    return found(await this.endpoints.findForChange(tx, key));
  }

  /**
   * Registers an endpoint whose URL `TargetPolicy` has allowed.
   * @throws NotFound for an unknown partner; AppError `limit_reached`, exact under concurrent registrations
   */
  async register(tx: Tx, by: ChangeAuthor, terms: NewEndpointTerms): Promise<EndpointWithSecret> {
    const { partnerId, mode, eventTypes } = terms;
    await this.partners.getByIdForUpdate(tx, partnerId);
    if ((await this.endpoints.countOf(tx, partnerId, mode)) >= MAX_ENDPOINTS) {
      throw new AppError('limit_reached', {
        detail: `A partner can have at most ${MAX_ENDPOINTS} endpoints per mode. Delete one first.`,
      });
    }
    const key = { partnerId, id: newId('whe') };
    const secret = newSigningSecret();
    await this.endpoints.insert(tx, { ...terms, id: key.id, secret: this.secrets.seal(secret, key.id) });
    await this.record(tx, by, key, 'created', { mode, event_types: eventTypes });
    return { endpoint: await this.getById(key, tx), secret };
  }

  /** A new URL applies from the next attempt on, new event types to later events. @throws NotFound */
  async update(
    tx: Tx,
    by: ChangeAuthor,
    key: EndpointKey,
    wanted: EndpointChange,
  ): Promise<WebhookEndpointEntity> {
    const before = await this.getForChange(tx, key);
    const change = differences(before, wanted);
    const fields = Object.keys(change).sort();
    if (fields.length === 0) return before;
    await this.endpoints.update(tx, key.id, change);
    await this.record(tx, by, key, 'updated', { fields });
    return this.getById(key, tx);
  }

  /** Discards undelivered deliveries; the log stays. @throws NotFound */
  async delete(tx: Tx, by: ChangeAuthor, key: EndpointKey): Promise<void> {
    // Locks out transactions that would create a delivery to the endpoint.
    found(await this.endpoints.findForDeletion(tx, key));
    await this.endpoints.markDeleted(tx, key.id);
    await this.record(tx, by, key, 'deleted');
  }

  /** Enables the endpoint (spec section 2, D32). An enabled or blocked endpoint does not change. @throws NotFound */
  async enable(
    tx: Tx,
    by: ChangeAuthor,
    key: EndpointKey,
    choice: BacklogChoice,
  ): Promise<WebhookEndpointEntity> {
    const before = await this.getForChange(tx, key);
    if (before.enabled) return before;
    // Updates one row; the worker updates the deliveries later (D32).
    if (choice.held === 'discard') await this.endpoints.giveUpBacklog(tx, key.id);
    const discarded = choice.held === 'discard' ? await this.deliveries.countGivenUp(tx, key.id) : 0;
    const resent = await this.backlog.settle(tx, key, choice);
    await this.endpoints.enable(tx, key.id);
    await this.record(tx, by, key, 'enabled', { ...choice, discarded, resent });
    tx.afterCommit(() => this.notifier.notify(key.id));
    return this.getById(key, tx);
  }

  /** Disables the endpoint by updating one row, which holds all its pending deliveries (D32). @throws NotFound */
  async disable(tx: Tx, by: ChangeAuthor, key: EndpointKey): Promise<WebhookEndpointEntity> {
    const before = await this.getForChange(tx, key);
    if (!before.enabled) return before;
    await this.endpoints.disable(tx, key.id);
    await this.record(tx, by, key, 'disabled', { reason: 'manual' });
    return this.getById(key, tx);
  }

  /**
   * The new secret signs from the next attempt on, and during the grace period the old one signs too (D29). A rotation
   * during a grace period drops the oldest secret at once, so there are never three. @throws NotFound
   */
  async rotateSecret(
    tx: Tx,
    by: ChangeAuthor,
    key: EndpointKey,
    graceSeconds: number,
  ): Promise<EndpointWithSecret> {
    await this.getForChange(tx, key);
    const secret = newSigningSecret();
    await this.endpoints.rotateSecret(tx, key.id, this.secrets.seal(secret, key.id), graceSeconds);
    await this.record(tx, by, key, 'secret_rotated', { grace_seconds: graceSeconds });
    return { endpoint: await this.getById(key, tx), secret };
  }

  /** Ends the grace period now; no effect without one. @throws NotFound */
  async finishRotation(tx: Tx, by: ChangeAuthor, key: EndpointKey): Promise<WebhookEndpointEntity> {
    const before = await this.getForChange(tx, key);
    if (before.previousSecret === null) return before;
    await this.endpoints.finishRotation(tx, key.id);
    await this.record(tx, by, key, 'secret_rotation_finished');
    return this.getById(key, tx);
  }

  private async record(
    tx: Tx,
    by: ChangeAuthor,
    { partnerId, id }: EndpointKey,
    change: string,
    details: NonNullable<AuditEntry['details']> = {},
  ): Promise<void> {
    const action = `webhook_endpoint.${change}`;
    await this.audit.record(tx, { ...by, action, partnerId, subjectId: id, details });
  }
}

function found(endpoint: WebhookEndpointEntity | null): WebhookEndpointEntity {
  if (!endpoint) throw new NotFound();
  return endpoint;
}

/**
 * Whether a change lets someone else receive the endpoint's events, or stops its receiver from receiving some. A wrong
 * receiver learns about the partner's customers. A receiver that misses a signature rejects every event.
 */
export function takesAway(before: WebhookEndpointEntity, wanted: EndpointChange): boolean {
  const { url, eventTypes, usageLevels, signatureSchemes } = { ...before, ...wanted };
  return (
    url !== before.url ||
    lacksAny(subscriptionsOf(eventTypes), subscriptionsOf(before.eventTypes)) ||
    lacksAny(usageLevels ?? [], before.usageLevels ?? []) ||
    lacksAny(signatureSchemes, before.signatureSchemes)
  );
}

function lacksAny<T>(wanted: readonly T[], before: readonly T[]): boolean {
  return before.some((each) => !wanted.includes(each));
}

function differences(before: WebhookEndpointEntity, wanted: EndpointChange): EndpointChange {
  const { url, description, eventTypes, usageLevels, signatureSchemes: schemes } = wanted;
  return {
    ...(url === undefined || url === before.url ? {} : { url }),
    ...(description === undefined || description === before.description ? {} : { description }),
    ...(eventTypes === undefined || sameSet(eventTypes, before.eventTypes) ? {} : { eventTypes }),
    ...(usageLevels === undefined || sameSet(usageLevels, before.usageLevels) ? {} : { usageLevels }),
    ...(schemes === undefined || sameSet(schemes, before.signatureSchemes)
      ? {}
      : { signatureSchemes: schemes }),
  };
}

function sameSet<T>(a: readonly T[] | null, b: readonly T[] | null): boolean {
  return (a?.toSorted().join() ?? null) === (b?.toSorted().join() ?? null);
}
