import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import type { Mode } from '../../common/mode.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, PathId, PortalMode, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import { PartnerEventsQueryDto } from '../admin/partner-events.controller.js';
import { EventResponse } from '../api/events.controller.js';
import { EventsRepository } from '../events.repository.js';

export class PortalEventsQueryDto extends PartnerEventsQueryDto {
  @PortalMode()
  mode?: Mode | null;
}

/** A partner's events in the portal: exactly the bodies that are sent, newest first. */
@ApiTags('Events')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/events')
export class PortalEventsController {
  constructor(private readonly events: EventsRepository) {}

  @Get()
  @NeedsScope('webhooks:read')
  @RespondsPage(EventResponse, {
    summary: 'List the events of a mode, newest first',
    description: 'Returns the events as webhooks deliver them.',
  })
  async listEvents(
    @Caller() caller: PortalPrincipal,
    @Query() query: PortalEventsQueryDto,
  ): Promise<ListResponse<EventResponse>> {
    const page = await this.events.listOfPartner(caller.inMode(query), query.type, toListOptions(query));
    return new ListResponse(mapPage(page, (event) => JSON.parse(event.body) as EventResponse));
  }

  @Get(':id')
  @NeedsScope('webhooks:read')
  @Responds(EventResponse, {
    summary: 'Get an event',
    description: 'Returns one event as its webhook delivers it.',
  })
  async getEvent(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('evt')) id: string,
  ): Promise<EventResponse> {
    const event = await this.events.findById(caller.anyMode, id);
    if (!event) throw new NotFound();
    return JSON.parse(event.body) as EventResponse;
  }
}
