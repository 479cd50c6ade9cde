import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import { SecretBox } from '../infra/crypto/index.js';
import type { Tx } from '../infra/database/index.js';
import { PartnersService } from '../partners/index.js';
import { FindEndpoint } from './find-endpoint.js';
import { newSigningSecret } from './signing-secret.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { type NewEndpoint, WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** At most this many endpoints per partner and mode (decisions, Changes). */
export const MAX_ENDPOINTS = 20;

export type NewEndpointTerms = Omit<NewEndpoint, 'id' | 'secret'>;

/** An endpoint at the one moment at which its secret is shown. */
export interface EndpointWithSecret {
  readonly endpoint: WebhookEndpointEntity;
  readonly secret: string;
}

/** Registers an endpoint; its URL has been checked by `TargetCheck`. */
@Injectable()
export class RegisterEndpoint {
  constructor(
    private readonly partners: PartnersService,
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly find: FindEndpoint,
    private readonly secrets: SecretBox,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound for an unknown partner; AppError `limit_reached`, exact however many registrations run */
  async execute(tx: Tx, by: ChangeAuthor, terms: NewEndpointTerms): Promise<EndpointWithSecret> {
    const { partnerId, mode, eventTypes } = terms;
    await this.partners.getByIdForUpdate(tx, partnerId);
    if ((await this.endpoints.countOf(tx, partnerId, mode)) >= MAX_ENDPOINTS) {
      throw new AppError('limit_reached', {
        detail: `A partner has at most ${MAX_ENDPOINTS} endpoints in each mode. Delete one first.`,
      });
    }
    const id = newId('whe');
    const secret = newSigningSecret();
    await this.endpoints.insert(tx, { ...terms, id, secret: this.secrets.seal(secret, id) });
    const details = { mode, event_types: eventTypes };
    await this.audit.record(tx, {
      ...by,
      action: 'webhook_endpoint.created',
      partnerId,
      subjectId: id,
      details,
    });
    return { endpoint: await this.find.getById({ partnerId, id }, tx), secret };
  }
}
