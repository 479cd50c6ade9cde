import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  SetMetadata,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { finalize, from, mergeMap, type Observable } from 'rxjs';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { CallerSlots } from './caller-slots.js';

const READS_A_LIST = 'reads-a-list';

/** Marks a handler that reads a list from the database. */
export const ReadsList = (): MethodDecorator => SetMetadata(READS_A_LIST, true);

/** Half of the connections: the other half is for what changes something, and for single reads. */
const SHARE_OF_LISTS = 0.5;

/**
 * Lets a partner read only so many lists of a mode at a time; the catalogue is read from memory (D43). An admin token, which stands
 * for the whole portal, may have all that lists may have.
 */
@Injectable()
export class BoundedListsInterceptor implements NestInterceptor {
  private readonly ofPartners: CallerSlots;
  private readonly ofTokens: CallerSlots;

  constructor(
    private readonly reflector: Reflector,
    @Inject(APP_CONFIG)
    config: Pick<AppConfig, 'listsPerPartner' | 'databasePoolMax' | 'databasePoolWaitMs'>,
  ) {
    const most = Math.max(1, Math.floor(config.databasePoolMax * SHARE_OF_LISTS));
    const settings = { what: 'lists', most, waitMs: config.databasePoolWaitMs };
    this.ofPartners = new CallerSlots({ ...settings, perCaller: config.listsPerPartner });
    this.ofTokens = new CallerSlots({ ...settings, perCaller: most });
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (!this.reflector.get<boolean | undefined>(READS_A_LIST, context.getHandler())) return next.handle();
    const { authResult } = context.switchToHttp().getRequest<FastifyRequest>();
    // Sandbox lists must not refuse Live ones (D41).
    const owner = authResult?.partnerId
      ? `${authResult.partnerId} ${authResult.mode}`
      : authResult?.listOwner;
    const slot = owner ? this.ofPartners.take(owner) : this.ofTokens.take(authResult?.keyId ?? '');
    return from(slot).pipe(mergeMap((release) => next.handle().pipe(finalize(release))));
  }
}
