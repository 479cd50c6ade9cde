import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsIn, IsString, MaxLength } from 'class-validator';
import { BearerKeyGuard, Caller, PartnerPrincipal } from '../../auth/index.js';
import { ValidationFailed } from '../../common/errors/index.js';
import { DEFAULT_LIMIT, ListQueryDto, Optional, PathId, SerializedResponse } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { EVENT_TYPES, type EventType } from '../event.js';
import { EventFeed } from '../event-feed.js';

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
    description: 'A `next_cursor` of this list, or the id of the last event that you have.',
  })
  @Optional()
  @IsString({ message: 'must be text' })
  @MaxLength(1_024, { message: 'must have at most 1024 characters' })
  after?: string;
}

/** The webhook's own ids and bytes, oldest first (D39). */
@ApiTags('Events')
@UseGuards(BearerKeyGuard)
@Controller('v1/events')
export class EventsController {
  constructor(private readonly feed: EventFeed) {}

  @Get()
  @RespondsPage(EventResponse, {
    summary: 'List events, oldest first, as webhooks deliver them',
    endless: true,
  })
  async listEvents(
    @Caller() caller: PartnerPrincipal,
    @Query() query: EventsQueryDto,
  ): Promise<SerializedResponse> {
    const page = await this.feed.list(caller, {
      type: query.type,
      after: startOf(query),
      limit: query.limit ?? DEFAULT_LIMIT,
    });
    return new SerializedResponse(
      `"data":[${page.bodies.join(',')}],"has_more":${page.hasMore},"next_cursor":"${page.nextCursor}"`,
    );
  }

  @Get(':id')
  @Responds(EventResponse, { summary: 'Get an event' })
  async getEvent(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('evt')) id: string,
  ): Promise<SerializedResponse> {
    const event = await this.feed.getById(caller, id);
    return new SerializedResponse(`"data":${event.body}`);
  }
}

/** `cursor` works here as on every list; `after` is its name in the feed. */
function startOf(query: EventsQueryDto): string | undefined {
  if (query.cursor !== undefined && query.after !== undefined) {
    throw new ValidationFailed([
      { pointer: '?after', code: 'exclusive', message: 'Give either after or cursor.' },
    ]);
  }
  return query.after ?? query.cursor;
}
