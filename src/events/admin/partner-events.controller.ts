import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ExistingPartner } from '../../partners/index.js';
import { ListResponse, ListQueryDto, Optional, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { EventResponse } from '../api/events.controller.js';
import { EVENT_TYPES, type EventType } from '../event.js';
import { EventsRepository } from '../events.repository.js';

export class PartnerEventsQueryDto extends ListQueryDto {
  @ApiPropertyOptional({ enum: EVENT_TYPES })
  @Optional()
  @IsIn(EVENT_TYPES, { message: 'must be a known event type' })
  type?: EventType;
}

/** Support's view of a partner's events, both modes, newest first. */
@ApiTags('Support')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/partners/:pid/events')
export class PartnerEventsController {
  constructor(private readonly events: EventsRepository) {}

  @Get()
  @RespondsPage(EventResponse, {
    summary: "List a partner's events in both modes, newest first",
    description: 'Returns the events as webhooks deliver them.',
  })
  @NeedsScope('webhooks:read')
  async listPartnerEvents(
    @Param('pid', ExistingPartner) partnerId: string,
    @Query() query: PartnerEventsQueryDto,
  ): Promise<ListResponse<EventResponse>> {
    const page = await this.events.listOfPartner({ partnerId }, query.type, toListOptions(query));
    return new ListResponse(mapPage(page, (event) => JSON.parse(event.body) as EventResponse));
  }
}
