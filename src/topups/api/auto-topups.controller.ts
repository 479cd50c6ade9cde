import { Body, Controller, Delete, Get, Param, Put, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { Transactions } from '../../infra/database/index.js';
import { PathId } from '../../infra/http/index.js';
import { ApiRefusals, Responds } from '../../infra/http/openapi/responds.js';
import { AutoTopups } from '../auto-topups.js';
import {
  AutoTopupDto,
  AutoTopupResponse,
  DeletedAutoTopupResponse,
  toAutoTopupResponse,
  toAutoTopupTerms,
} from './auto-topup.dto.js';

@ApiTags('Topups')
@UseGuards(BearerKeyGuard)
@Controller('v1/esims/:id/auto-topup')
export class AutoTopupsController {
  constructor(
    private readonly autoTopups: AutoTopups,
    private readonly transactions: Transactions,
  ) {}

  @Put()
  @ApiRefusals(
    'esim_expired',
    'esim_not_ready',
    'topup_not_supported',
    'package_unavailable',
    'price_changed',
  )
  @Responds(AutoTopupResponse, {
    summary: 'Set the automatic top-up of an eSIM',
    description:
      'Places a top-up when the usage crosses `at_percent`, at most once per crossing. Replaces the rule that the eSIM has. Needs no Idempotency-Key, because repeating the call changes nothing.',
  })
  @NeedsScope('topups:write')
  async setAutoTopup(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
    @Body() body: AutoTopupDto,
  ): Promise<AutoTopupResponse> {
    const terms = toAutoTopupTerms(body, caller);
    return toAutoTopupResponse(
      await this.transactions.run((tx) => this.autoTopups.set(tx, caller, id, terms)),
    );
  }

  @Get()
  @Responds(AutoTopupResponse, {
    summary: 'Get the automatic top-up of an eSIM',
    description: 'Returns the rule with its status and the number of top-ups placed. 404 if there is none.',
  })
  @NeedsScope('esims:read')
  async getAutoTopup(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<AutoTopupResponse> {
    return toAutoTopupResponse(await this.autoTopups.get(caller, id));
  }

  @Delete()
  @Responds(DeletedAutoTopupResponse, {
    summary: 'Delete the automatic top-up of an eSIM',
    description:
      'Prevents further automatic top-ups. One that was already placed continues. Deleting a deleted rule returns 200.',
  })
  @NeedsScope('topups:write')
  async deleteAutoTopup(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) id: string,
  ): Promise<DeletedAutoTopupResponse> {
    await this.transactions.run((tx) => this.autoTopups.delete(tx, caller, id));
    return { esim_id: id, deleted: true };
  }
}
