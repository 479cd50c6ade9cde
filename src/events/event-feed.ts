import { Inject, Injectable } from '@nestjs/common';
import { HOUR_MS } from '../common/durations.js';
import { AppError, NotFound } from '../common/errors/index.js';
import { isId } from '../common/ids.js';
import { type Mode, perMode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { Batcher } from '../infra/batcher.js';
import { CursorCodec } from '../infra/crypto/index.js';
import type { EventType } from './event.js';
import type { EventEntity } from './event.entity.js';
import { EventSubjectsRepository } from './event-subjects.repository.js';
import { EventsRepository, type IdWindow, POSITIONS_BATCH } from './events.repository.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { Sweeps } from '../infra/sweeps.js';

export interface FeedPage {
  readonly bodies: readonly string[];
  readonly hasMore: boolean;
  /** Always present: a poller stores it even when the page is empty (D39). */
  readonly nextCursor: string;
  /** Every matching event up to this position was read or is on the page. */
  readonly position: number;
}

export interface FeedRequest {
  readonly type: EventType | undefined;
  /** Id of an order, eSIM or top-up: lists only events that name it. */
  readonly subject?: string | undefined;
  /** A `next_cursor` of this feed, or the id of an event. */
  readonly after: string | undefined;
  readonly limit: number;
}

/** A partner's events in one mode, oldest first, with exactly the bytes of the webhooks (D39). */
@Injectable()
export class EventFeed {
  /** Batches the readers that wait for committed events to get positions. */
  private readonly readers = perMode((mode) => this.newReaders(mode));

  constructor(
    private readonly events: EventsRepository,
    private readonly cursors: CursorCodec,
    private readonly subjects: EventSubjectsRepository,
  ) {}

  /** @throws AppError `invalid_cursor` when `after` is neither an event of this partner nor a cursor of this list */
  async list(scope: TenantScope, request: FeedRequest): Promise<FeedPage> {
    await this.givePositions(scope.mode);
    const { type, subject: id } = request;
    const ofSubject = id === undefined ? [] : [id];
    const cursorScope = ['events', scope.partnerId, scope.mode, type ?? null, ...ofSubject];
    const start = await this.startOf(scope, request.after, cursorScope);
    const subject = id === undefined ? undefined : await this.subjects.find(scope, id);
    const filters = { type, subject: subject ?? undefined };
    // Read the days anyway, because the cursor of an empty page advances too.
    const limit = subject === null ? 0 : request.limit + 1;
    const found = await this.events.listAfter(scope, start, filters, limit);
    const items = found.items.slice(0, request.limit);
    const hasMore = found.items.length > request.limit;
    // A poller continues after everything that was read, not after the last matching event.
    const position = hasMore ? items.at(-1)!.position : found.completeTo;
    const bodies = items.map((item) => item.body);
    return { bodies, hasMore, nextCursor: this.cursors.encode([position], cursorScope), position };
  }

  /** The mode's greatest position, once every committed event has one. */
  async head(mode: Mode): Promise<number> {
    const { head, unpositioned } = await this.events.feedHead(recentIds(), mode);
    if (!unpositioned) return head;
    await this.givePositions(mode);
    return (await this.events.feedHead(recentIds(), mode)).head;
  }

  /** @throws NotFound */
  async getById(scope: TenantScope, id: string): Promise<EventEntity> {
    const event = await this.events.findById(scope, id);
    if (!event) throw new NotFound();
    return event;
  }

  /** Readers assign positions too, so that an event is listed as soon as it is committed. */
  private async givePositions(mode: Mode): Promise<void> {
    if (!(await this.events.hasUnpositioned(recentIds(), mode))) return;
    await this.readers[mode].add();
  }

  /** Only one transaction at a time assigns positions, so a process's waiting readers share one. */
  private newReaders(mode: Mode): Batcher<void> {
    return new Batcher({
      handle: async () => {
        const window = recentIds();
        if (await this.events.hasUnpositioned(window, mode)) await this.events.assignPositions(window, mode);
      },
      maxItems: Infinity,
      gather: 'microtask',
    });
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

/** Interval of the search through all days, which finds events recorded by a process with a wrong clock. */
const ANYWHERE_EVERY_MS = 60_000;

/** Ids of events that may still wait for a position: no transaction takes an hour, and no two clocks differ by one. */
function recentIds(): IdWindow {
  const now = Date.now();
  return { from: new Date(now - HOUR_MS), to: new Date(now + HOUR_MS) };
}

/** Assigns feed positions to committed events, so that readers find little left to do (D39). */
@Injectable()
export class EventPositions {
  constructor(
    private readonly events: EventsRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'sweepIntervalMs'>,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'events.positions',
      intervalMs: config.sweepIntervalMs,
      run: (stopping) => this.assign(recentIds(), stopping),
    });
    sweeps.register({
      name: 'events.positions_anywhere',
      intervalMs: ANYWHERE_EVERY_MS,
      run: async (stopping) => {
        await this.assign(null, stopping);
        await this.events.forgetDroppedDays();
      },
    });
  }

  /** Stops after a batch that is not full, because events may arrive as fast as positions are assigned. */
  private async assign(window: IdWindow, stopping: AbortSignal): Promise<void> {
    if (!(await this.events.hasUnpositioned(window))) return;
    while (!stopping.aborted && (await this.events.assignPositionsUnlessBusy(window)) >= POSITIONS_BATCH);
  }
}
