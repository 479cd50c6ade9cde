import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { SecretBox } from '../infra/crypto/index.js';
import type { Tx } from '../infra/database/index.js';
import { FindEndpoint } from './find-endpoint.js';
import type { EndpointWithSecret } from './register-endpoint.js';
import { newSigningSecret } from './signing-secret.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { type EndpointKey, WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** Rotates signing secrets; from the next attempt on the new one signs, and in the grace the old one too (D29). */
@Injectable()
export class RotateSecret {
  constructor(
    private readonly find: FindEndpoint,
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly secrets: SecretBox,
    private readonly audit: AuditLog,
  ) {}

  /** Within a grace, the older of the two old secrets ends at once: there are never three. @throws NotFound */
  async execute(
    tx: Tx,
    by: ChangeAuthor,
    key: EndpointKey,
    graceSeconds: number,
  ): Promise<EndpointWithSecret> {
    await this.find.getForChange(tx, key);
    const secret = newSigningSecret();
    await this.endpoints.rotateSecret(tx, key.id, this.secrets.seal(secret, key.id), graceSeconds);
    await this.audit.record(tx, {
      ...by,
      action: 'webhook_endpoint.secret_rotated',
      partnerId: key.partnerId,
      subjectId: key.id,
      details: { grace_seconds: graceSeconds },
    });
    return { endpoint: await this.find.getById(key, tx), secret };
  }

  /** Ends the grace now; without one nothing changes. @throws NotFound */
  async finish(tx: Tx, by: ChangeAuthor, key: EndpointKey): Promise<WebhookEndpointEntity> {
    const before = await this.find.getForChange(tx, key);
    if (before.previousSecret === null) return before;
    await this.endpoints.finishRotation(tx, key.id);
    await this.audit.record(tx, {
      ...by,
      action: 'webhook_endpoint.secret_rotation_finished',
      partnerId: key.partnerId,
      subjectId: key.id,
    });
    return this.find.getById(key, tx);
  }
}
