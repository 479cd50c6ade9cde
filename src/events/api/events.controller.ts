import { Controller, Get, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsIn, IsString, MaxLength, ValidateBy } from 'class-validator';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import {
  DEFAULT_LIMIT,
  ListQueryDto,
  ListSlots,
  Optional,
  PathId,
  SerializedResponse,
  startOfFeed,
} from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { EVENT_TYPES, type EventType } from '../event.js';
import { EventFeed, type FeedPage } from '../event-feed.js';
import { isSubjectId } from '../event-subjects.repository.js';
import { LongPolling } from './long-polling.js';

export class EventResponse {
  @ApiProperty({ type: String, example: 'evt_01KAEXAMPLE0000000000000000' })
  id!: string;

  @ApiProperty({ enum: EVENT_TYPES })
  type!: EventType;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;

  @ApiProperty({ type: 'object', additionalProperties: true })
  data!: Record<string, unknown>;
}

export class EventsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: EVENT_TYPES })
  @Optional()
  @IsIn(EVENT_TYPES, { message: 'must be a known event type' })
  type?: EventType;

  @ApiPropertyOptional({
    type: String,
    minLength: 1,
    maxLength: 1_024,
    pattern: '^[A-Za-z0-9_-]+$',
    description: 'A `next_cursor` of this list, or the id of the last event that you received.',
  })
  @Optional()
  @IsString({ message: 'must be text' })
  @MaxLength(1_024, { message: 'must have at most 1024 characters' })
  after?: string;

  @ApiPropertyOptional({
    type: String,
    pattern: '^(ord|esim|top)_[0-9A-HJKMNP-TV-Z]{26}$',
    example: 'ord_01KAEXAMP1E000000000000000',
    description: 'The id of an order, eSIM or top-up. Returns only events about it.',
  })
  @Optional()
  @ValidateBy({
    name: 'subject',
    validator: {
      validate: (value) => typeof value === 'string' && isSubjectId(value),
      defaultMessage: () => 'must be the id of an order, an eSIM or a top-up',
    },
  })
  subject?: string;
}

/** The same ids and bytes as the webhooks, oldest first (D39). */
@ApiTags('Events')
@UseGuards(BearerKeyGuard)
@Controller('v1/events')
export class EventsController {
  constructor(
    private readonly feed: EventFeed,
    private readonly polling: LongPolling,
    private readonly slots: ListSlots,
  ) {}

  @Get()
  @RespondsPage(EventResponse, {
    summary: 'List events, oldest first',
    description:
      'Returns events exactly as webhooks deliver them. The list has no last page: send `next_cursor` as `after` to get newer events. With `Prefer: wait=N`, the call waits for the next event.',
    endless: 'evt_01KAEXAMPLE000000000000000',
    waits: true,
  })
  @NeedsScope('events:read')
  async listEvents(
    @Caller() caller: PartnerPrincipal,
    @Query() query: EventsQueryDto,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<SerializedResponse> {
    const { type, subject, limit = DEFAULT_LIMIT } = query;
    let after = startOfFeed(query);
    const page = await this.polling.readUntil({ caller, request, reply }, async () => {
      const filters = { type, subject, after, limit };
      const value = await this.slots.read(request, () => this.feed.list(caller, filters));
      after = value.nextCursor;
      return { value, isAwaited: value.bodies.length > 0, position: value.position };
    });
    return toResponse(page);
  }

  @Get(':id')
  @Responds(EventResponse, {
    summary: 'Get an event',
    description: 'Returns one event, exactly as its webhook delivers it.',
  })
  @NeedsScope('events:read')
  async getEvent(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('evt')) id: string,
  ): Promise<SerializedResponse> {
    const event = await this.feed.getById(caller, id);
    return new SerializedResponse(`"data":${event.body}`);
  }
}

function toResponse({ bodies, hasMore, nextCursor }: FeedPage): SerializedResponse {
  return new SerializedResponse(
    `"data":[${bodies.join(',')}],"has_more":${hasMore},"next_cursor":"${nextCursor}"`,
  );
}
