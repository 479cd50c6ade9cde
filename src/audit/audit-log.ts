import { createParamDecorator, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { AdminPrincipal, PortalPrincipal } from '../auth/index.js';
import { newId } from '../common/ids.js';
import type { Tx } from '../infra/database/index.js';
import { LOGGER } from '../infra/logging.js';
import { AuditRepository } from './audit.repository.js';

/** Somebody in a session of the portal. */
export type PortalActor = Pick<PortalPrincipal, 'tokenName' | 'portalUser' | 'sessionId'>;

/** One administrative change. `details` never holds a key or a secret. */
export interface AuditEntry {
  /** Who: the caller of the admin API or of the portal, or `system` when the service itself acted (a disable after five blocks, D31). */
  readonly actor: AdminPrincipal | PortalActor | 'system';
  /** What, as `noun.verb`: `api_key.revoked`. */
  readonly action: string;
  readonly partnerId: string | null;
  readonly subjectId: string;
  readonly details?: Readonly<Record<string, string | number | boolean | null | string[]>>;
  readonly requestId?: string;
}

/** Who makes an administrative change, and in which call: the part of an audit entry that the caller knows. */
export type ChangeAuthor = Pick<AuditEntry, 'actor' | 'requestId'>;

/** Gives a handler of the admin API or of the portal the author that it passes to its use case. */
export const Author = createParamDecorator((_: unknown, context: ExecutionContext): ChangeAuthor => {
  const request = context.switchToHttp().getRequest<FastifyRequest>();
  return { actor: request.principal as AdminPrincipal | PortalPrincipal, requestId: request.id };
});

/** The `event` of the log line of a change. */
export const AUDIT_LOGGED = 'audit.recorded';

/**
 * Writes who changed what, in the transaction of the change, and after its commit into the process's log: a database that
 * is put back to an earlier time loses its own, and somebody has to know which keys were revoked (D54).
 */
@Injectable()
export class AuditLog {
  private readonly logger: Logger;

  constructor(
    private readonly entries: AuditRepository,
    @Inject(LOGGER) logger: Logger,
  ) {
    // Whatever else is logged: who reads the log after a restore has nothing else to go by.
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
    tx.afterCommit(() => this.logger.info({ event: AUDIT_LOGGED, auditId, ...logged }, 'a change was made'));
  }
}
