import { Body, Controller, Delete, Get, Param, Put, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditLog, Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { EsimQueries } from '../../esims/index.js';
import { Transactions } from '../../infra/database/index.js';
import { PathId } from '../../infra/http/index.js';
import { ApiRefusals, Responds } from '../../infra/http/openapi/responds.js';
import {
  AutoTopupDto,
  AutoTopupResponse,
  DeletedAutoTopupResponse,
  toAutoTopupResponse,
  toAutoTopupTerms,
} from '../api/auto-topup.dto.js';
import { AutoTopups } from '../auto-topups.js';

/** Top-ups that a session's rule places count toward no key's spend limit. */
const NO_KEY = { limitedKeyId: null };

/** The automatic top-up of an eSIM in the portal. */
@ApiTags('Topups')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/esims/:id/auto-topup')
export class PortalAutoTopupsController {
  constructor(
    private readonly autoTopups: AutoTopups,
    private readonly esims: EsimQueries,
    private readonly audit: AuditLog,
    private readonly transactions: Transactions,
  ) {}

  @Put()
  @NeedsScope('esims:write')
  @ApiRefusals(
    'esim_expired',
    'esim_not_ready',
    'topup_not_supported',
    'package_unavailable',
    'price_changed',
    'step_up_required',
  )
  @Responds(AutoTopupResponse, {
    summary: 'Set the automatic top-up of an eSIM',
    description:
      'Places a top-up when the usage crosses `at_percent`, at most once per crossing. Replaces the rule that the eSIM has. A live eSIM needs a session younger than 15 minutes.',
  })
  async setAutoTopup(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Body() body: AutoTopupDto,
  ): Promise<AutoTopupResponse> {
    const { partnerId, mode } = await this.esims.getById(caller.anyMode, id);
    // The rule spends money by itself.
    if (mode === 'live') caller.assertYoung();
    const terms = toAutoTopupTerms(body, NO_KEY);
    return this.transactions.run(async (tx) => {
      const shown = await this.autoTopups.set(tx, { partnerId, mode }, id, terms);
      const { packageId, maxTimes } = terms;
      await this.audit.record(tx, {
        ...by,
        action: 'esim.auto_topup_set',
        partnerId,
        subjectId: id,
        details: { mode, package_id: packageId, max_times: maxTimes },
      });
      return toAutoTopupResponse(shown);
    });
  }

  @Get()
  @NeedsScope('orders:read')
  @Responds(AutoTopupResponse, {
    summary: 'Get the automatic top-up of an eSIM',
    description: 'Returns the rule with its status and the number of top-ups placed. 404 if there is none.',
  })
  async getAutoTopup(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<AutoTopupResponse> {
    return toAutoTopupResponse(await this.autoTopups.get(caller.anyMode, id));
  }

  @Delete()
  @NeedsScope('esims:write')
  @Responds(DeletedAutoTopupResponse, {
    summary: 'Delete the automatic top-up of an eSIM',
    description:
      'Prevents further automatic top-ups. One that was already placed continues. Deleting a deleted rule returns 200.',
  })
  async deleteAutoTopup(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<DeletedAutoTopupResponse> {
    const { partnerId, mode } = await this.esims.getById(caller.anyMode, id);
    await this.transactions.run(async (tx) => {
      await this.autoTopups.delete(tx, { partnerId, mode }, id);
      await this.audit.record(tx, {
        ...by,
        action: 'esim.auto_topup_deleted',
        partnerId,
        subjectId: id,
        details: { mode },
      });
    });
    return { esim_id: id, deleted: true };
  }
}
