import { Body, Controller, Delete, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { BearerKeyGuard, Caller, NeedsScope, PartnerPrincipal } from '../../auth/index.js';
import { mapPage } from '../../common/page.js';
import { Transactions } from '../../infra/database/index.js';
import { ListQueryDto, ListResponse, PathId, toListOptions } from '../../infra/http/index.js';
import { Responds, RespondsPage } from '../../infra/http/openapi/responds.js';
import {
  type IdempotencyKey,
  IdempotencyKeyParam,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { InstallLinksService } from '../install-links.service.js';
import {
  CreatedInstallLinkResponse,
  CreateInstallLinkDto,
  InstallLinkResponse,
  RevokedInstallLinkResponse,
  toInstallLinkResponse,
  toInstallLinkTerms,
  toShownOnce,
} from './install-link.dto.js';

/** Links that a partner sends to its travelers. */
@ApiTags('Esims')
@UseGuards(BearerKeyGuard)
@Controller('v1/esims/:id/install-links')
export class InstallLinksController {
  constructor(
    private readonly links: InstallLinksService,
    private readonly transactions: Transactions,
    private readonly idempotent: IdempotentExecutor,
  ) {}

  @IdempotentPost('/', {
    status: 201,
    response: CreatedInstallLinkResponse,
    summary: 'Create an install link for an eSIM',
    description:
      'Returns the address of a page that shows the traveler how to install the eSIM, in twelve languages. Only this response shows `url` and `access_code`.',
    location: true,
    refusals: ['not_supported', 'esim_expired', 'esim_not_ready', 'limit_reached'],
  })
  @NeedsScope('install:read')
  async createInstallLink(
    @Caller() caller: PartnerPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) esimId: string,
    @Body() body?: CreateInstallLinkDto,
  ): Promise<RenderedResponse> {
    const terms = toInstallLinkTerms(body);
    return this.idempotent.execute(key, async (tx) => {
      const created = await this.links.create(tx, await this.links.getEsim(caller, esimId, tx), terms);
      return { ...toShownOnce(created), location: `/v1/esims/${esimId}/install-links/${created.link.id}` };
    });
  }

  @Get()
  @RespondsPage(InstallLinkResponse, {
    summary: 'List the install links of an eSIM, newest first',
    description: 'Returns the links without their addresses. Expired links stay listed for a while.',
  })
  @NeedsScope('install:read')
  async listInstallLinks(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) esimId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<InstallLinkResponse>> {
    const page = await this.links.list(caller, esimId, toListOptions(query));
    return new ListResponse(mapPage(page, toInstallLinkResponse));
  }

  @Get(':lid')
  @Responds(InstallLinkResponse, {
    summary: 'Get an install link',
    description: 'Returns the link without its address. `opened_count` says how often its page was shown.',
  })
  @NeedsScope('install:read')
  async getInstallLink(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) esimId: string,
    @Param('lid', PathId('ilk')) id: string,
  ): Promise<InstallLinkResponse> {
    return toInstallLinkResponse(await this.links.get(caller, { esimId, id }));
  }

  @Delete(':lid')
  @Responds(RevokedInstallLinkResponse, {
    summary: 'Revoke an install link',
    description:
      'The page of the link is a 404 from then on. An eSIM that is already on a phone keeps working. Revoking a link again returns 404.',
  })
  @NeedsScope('install:read')
  async revokeInstallLink(
    @Caller() caller: PartnerPrincipal,
    @Param('id', PathId('esim')) esimId: string,
    @Param('lid', PathId('ilk')) id: string,
  ): Promise<RevokedInstallLinkResponse> {
    await this.transactions.run((tx) => this.links.revoke(tx, caller, { esimId, id }));
    return { id, revoked: true };
  }
}
