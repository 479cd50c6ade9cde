import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { ListResponse, toListOptions } from '../../infra/http/index.js';
import { RespondsPage } from '../../infra/http/openapi/responds.js';
import { AuditRepository } from '../audit.repository.js';
import {
  AuditEntryResponse,
  AuditLogQueryDto,
  toAuditEntryResponse,
  toAuditFilters,
} from './audit-log.dto.js';

/** Administrative changes with author and time (docs/openapi). */
@ApiTags('Audit log')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1/audit-log')
export class AuditLogController {
  constructor(private readonly entries: AuditRepository) {}

  @Get()
  @RespondsPage(AuditEntryResponse, {
    summary: 'List who changed what, newest first',
    description: 'Returns each change with its time, its author and the changed values.',
  })
  @NeedsScope('audit:read')
  async listAuditEntries(@Query() query: AuditLogQueryDto): Promise<ListResponse<AuditEntryResponse>> {
    const page = await this.entries.list(toAuditFilters(query), toListOptions(query));
    return new ListResponse(mapPage(page, toAuditEntryResponse));
  }
}
