import { Inject, Injectable } from '@nestjs/common';
import { AppError, NotFound } from '../common/errors/index.js';
import { isId } from '../common/ids.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { CursorCodec } from '../infra/crypto/index.js';
import type { EventType } from './event.js';
import type { EventEntity } from './event.entity.js';
import { EventsRepository } from './events.repository.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { Sweeps } from '../infra/sweeps.js';

export interface FeedPage {
  readonly bodies: readonly string[];
  readonly hasMore: boolean;
  /** Always present: a poller keeps it even when the page is empty (D39). */
  readonly nextCursor: string;
}

export interface FeedRequest {
  readonly type: EventType | undefined;
  /** A `next_cursor` of this feed, or the id of an event. */
  readonly after: string | undefined;
  readonly limit: number;
}

/** The events of a partner and mode, oldest first, with the very bytes of the webhooks (D39). */
@Injectable()
export class EventFeed {
  constructor(
    private readonly events: EventsRepository,
    private readonly cursors: CursorCodec,
  ) {}

  /** @throws AppError `invalid_cursor` when `after` is neither an event of this partner nor a cursor of this list. */
  async list(scope: TenantScope, request: FeedRequest): Promise<FeedPage> {
    await this.givePositions();
    const cursorScope = ['events', scope.partnerId, scope.mode, request.type ?? null];
    const start = await this.startOf(scope, request.after, cursorScope);
    // Before the page: positions appear in their order, so the page sees all that is not behind this one (D39).
    const end = request.type === undefined ? start : await this.events.lastPosition(scope);
    const found = await this.events.listAfter(scope, start, request.type, request.limit + 1);
    const items = found.slice(0, request.limit);
    const hasMore = found.length > request.limit;
    const last = items.at(-1)?.position ?? start;
    // On the last page also behind events of other types: the next poll need not look at them again.
    const next = hasMore ? last : Math.max(last, end);
    return {
      bodies: items.map((item) => item.body),
      hasMore,
      nextCursor: this.cursors.encode([next], cursorScope),
    };
  }

  /** @throws NotFound */
  async getById(scope: TenantScope, id: string): Promise<EventEntity> {
    const event = await this.events.findById(scope, id);
    if (!event) throw new NotFound();
    return event;
  }

  /** Readers give positions too, so that an event is listed as soon as it is committed. */
  private async givePositions(): Promise<void> {
    if (await this.events.hasUnpositioned()) await this.events.assignPositions();
  }

  private async startOf(
    scope: TenantScope,
    after: string | undefined,
    cursorScope: unknown,
  ): Promise<number> {
    if (after === undefined) return 0;
    if (!isId('evt', after)) return Number(this.cursors.decode(after, cursorScope)[0]);
    const event = await this.events.findById(scope, after);
    if (event?.position == null) throw new AppError('invalid_cursor');
    return event.position;
  }
}

/** Gives feed positions to committed events, so that readers find little left to do (D39). */
@Injectable()
export class EventPositions {
  constructor(
    events: EventsRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'sweepIntervalMs'>,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'events.positions',
      intervalMs: config.sweepIntervalMs,
      run: async () => {
        while ((await events.hasUnpositioned()) && (await events.assignPositions()) > 0);
      },
    });
  }
}
