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

/** Lets a partner, or an admin token, read only so many lists at a time; the catalogue is read from memory (D43). */
@Injectable()
export class BoundedListsInterceptor implements NestInterceptor {
  private readonly slots: CallerSlots;

  constructor(
    private readonly reflector: Reflector,
    @Inject(APP_CONFIG)
    config: Pick<AppConfig, 'listsPerPartner' | 'databasePoolMax' | 'databasePoolWaitMs'>,
  ) {
    this.slots = new CallerSlots({
      what: 'lists',
      perCaller: config.listsPerPartner,
      most: Math.max(1, Math.floor(config.databasePoolMax * SHARE_OF_LISTS)),
      waitMs: config.databasePoolWaitMs,
    });
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (!this.reflector.get<boolean | undefined>(READS_A_LIST, context.getHandler())) return next.handle();
    const { authResult } = context.switchToHttp().getRequest<FastifyRequest>();
    const slot = this.slots.take(authResult?.partnerId ?? authResult?.keyId ?? '');
    return from(slot).pipe(mergeMap((release) => next.handle().pipe(finalize(release))));
  }
}
