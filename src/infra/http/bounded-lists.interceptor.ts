import {
  type CallHandler,
  type ExecutionContext,
  Global,
  Inject,
  Injectable,
  Module,
  type NestInterceptor,
  SetMetadata,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { finalize, from, mergeMap, type Observable } from 'rxjs';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { ServerContact } from '../database/index.js';
import { CallerSlots } from './caller-slots.js';

const READS_A_LIST = 'reads-a-list';

/** Marks a handler that reads a list from the database. */
export const ReadsList = (): MethodDecorator => SetMetadata(READS_A_LIST, true);

/** Half of the connections; the other half is for writes and single reads. */
const SHARE_OF_LISTS = 0.5;

/**
 * Limits a partner's concurrent list reads per mode (D43). The catalog is exempt, because it is read from memory. An
 * admin token, which serves the whole portal, may use the full limit.
 */
@Injectable()
export class ListSlots {
  private readonly ofPartners: CallerSlots;
  private readonly ofTokens: CallerSlots;

  constructor(
    @Inject(APP_CONFIG)
    config: Pick<AppConfig, 'listsPerPartner' | 'databasePoolMax' | 'databasePoolWaitMs'>,
    contact: ServerContact,
  ) {
    const most = Math.max(1, Math.floor(config.databasePoolMax * SHARE_OF_LISTS));
    const waitMs = config.databasePoolWaitMs;
    const standsStill = (): boolean => contact.isDisturbed(waitMs / 2);
    const settings = { what: 'lists', most, waitMs, standsStill };
    this.ofPartners = new CallerSlots({ ...settings, perCaller: config.listsPerPartner });
    this.ofTokens = new CallerSlots({ ...settings, perCaller: most });
  }

  /** Returns the function that releases the slot. @throws AppError `rate_limited`, `service_unavailable` */
  take(request: FastifyRequest): Promise<() => void> {
    const { slots, owner } = this.ownerOf(request);
    return slots.take(owner);
  }

  /** Reads with a slot, for a handler that does not hold one throughout. @throws as `take` */
  read<T>(request: FastifyRequest, list: () => Promise<T>): Promise<T> {
    const { slots, owner } = this.ownerOf(request);
    return slots.run(owner, list);
  }

  private ownerOf({ authResult }: FastifyRequest): { readonly slots: CallerSlots; readonly owner: string } {
    // Sandbox lists must not cause refusals in Live (D41).
    const owner = authResult?.partnerId
      ? `${authResult.partnerId} ${authResult.mode}`
      : authResult?.slotOwner;
    return owner
      ? { slots: this.ofPartners, owner }
      : { slots: this.ofTokens, owner: authResult?.keyId ?? '' };
  }
}

/** Holds a slot during every handler that reads a list. */
@Injectable()
export class BoundedListsInterceptor implements NestInterceptor {
  constructor(
    private readonly reflector: Reflector,
    private readonly slots: ListSlots,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (!this.reflector.get<boolean | undefined>(READS_A_LIST, context.getHandler())) return next.handle();
    const slot = this.slots.take(context.switchToHttp().getRequest<FastifyRequest>());
    return from(slot).pipe(mergeMap((release) => next.handle().pipe(finalize(release))));
  }
}

@Global()
@Module({ providers: [ListSlots], exports: [ListSlots] })
export class ListSlotsModule {}
