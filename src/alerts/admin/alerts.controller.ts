import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListAnswer, toListOptions } from '../../infra/http/index.js';
import { AnswersPage } from '../../infra/http/openapi/index.js';
import { AlertsRepository } from '../alerts.repository.js';
import { AlertResponse, toAlertResponse } from './alert.response.js';
import { AlertsQueryDto, toAlertFilters } from './alerts-query.dto.js';

/** What happened that somebody should look at (docs/openapi). */
@ApiTags('Alerts')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/alerts')
export class AlertsController {
  constructor(private readonly alerts: AlertsRepository) {}

  @Get()
  @AnswersPage(AlertResponse, { summary: 'List what happened that somebody should look at, oldest first' })
  async listAlerts(@Query() query: AlertsQueryDto): Promise<ListAnswer<AlertResponse>> {
    const page = await this.alerts.list(toAlertFilters(query), toListOptions(query));
    return new ListAnswer(mapPage(page, toAlertResponse));
  }
}
