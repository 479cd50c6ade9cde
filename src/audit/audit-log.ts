import { createParamDecorator, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { AdminPrincipal, PortalPrincipal } from '../auth/index.js';
import { newId } from '../common/ids.js';
import type { Tx } from '../infra/database/index.js';
import { LOGGER } from '../infra/logging.js';
import { AuditRepository } from './audit.repository.js';

/** A person in a portal session. */
export type PortalActor = Pick<PortalPrincipal, 'tokenName' | 'portalUser' | 'sessionId'>;

/** One administrative change. `details` never contains a key or a secret. */
export interface AuditEntry {
  /**
   * The caller of the admin API or portal, or `system` when the service itself acted (a disable after five blocks,
   * D31).
   */
  readonly actor: AdminPrincipal | PortalActor | 'system';
  /** The action as `noun.verb`: `api_key.revoked`. */
  readonly action: string;
  readonly partnerId: string | null;
  readonly subjectId: string;
  readonly details?: Readonly<Record<string, string | number | boolean | null | string[]>>;
  readonly requestId?: string;
}

/** Author and request id of an administrative change: the part of an audit entry that the caller knows. */
export type ChangeAuthor = Pick<AuditEntry, 'actor' | 'requestId'>;

/** Injects the author into a handler of the admin API or portal, which passes it to its use case. */
export const Author = createParamDecorator((_: unknown, context: ExecutionContext): ChangeAuthor => {
  const request = context.switchToHttp().getRequest<FastifyRequest>();
  return { actor: request.principal as AdminPrincipal | PortalPrincipal, requestId: request.id };
});

/** The `event` of a change's log line. */
export const AUDIT_LOGGED = 'audit.recorded';

/**
 * Records administrative changes in their transaction, and after its commit in the process's log. A database restored
 * to an earlier time loses its own entries, and operators must learn which keys were revoked (D54).
 */
@Injectable()
export class AuditLog {
  private readonly logger: Logger;

  constructor(
    private readonly entries: AuditRepository,
    @Inject(LOGGER) logger: Logger,
  ) {
    // Independent of the log level: after a restore an operator has nothing else to rely on.
    this.logger = logger.level === 'silent' ? logger : logger.child({}, { level: 'info' });
  }

  async record(tx: Tx, entry: AuditEntry): Promise<void> {
    const { actor } = entry;
    const row = {
      id: newId('aud'),
      actor: actor === 'system' ? actor : actor.tokenName,
      portalUser: actor === 'system' ? null : actor.portalUser,
      sessionId: actor !== 'system' && 'sessionId' in actor ? actor.sessionId : null,
      action: entry.action,
      partnerId: entry.partnerId,
      subjectId: entry.subjectId,
      details: { ...entry.details },
      requestId: entry.requestId ?? null,
    };
    await this.entries.insert(tx, row);
    const { id: auditId, ...logged } = row;
    tx.afterCommit(() => this.logger.info({ event: AUDIT_LOGGED, auditId, ...logged }, 'change recorded'));
  }
}
