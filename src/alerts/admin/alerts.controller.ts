import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { AlertsRepository } from '../alerts.repository.js';
import { AlertResponse, AlertsQueryDto, toAlertFilters, toAlertResponse } from './alerts.dto.js';

/** Alerts that need the portal team's attention (docs/openapi). */
@ApiTags('Alerts')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/alerts')
export class AlertsController {
  constructor(private readonly alerts: AlertsRepository) {}

  @Get()
  @RespondsPage(AlertResponse, {
    summary: 'List alerts, oldest first',
    description:
      'Returns conditions that need attention: blocked endpoints, low balances, expiring keys and purchases that need a review. An alert is resolved when its cause has ended.',
  })
  @NeedsScope('alerts:read')
  async listAlerts(@Query() query: AlertsQueryDto): Promise<ListResponse<AlertResponse>> {
    const page = await this.alerts.list(toAlertFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toAlertResponse));
  }
}
