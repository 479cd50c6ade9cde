import { Body, Controller, Delete, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
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
import {
  CreatedInstallLinkResponse,
  CreateInstallLinkDto,
  InstallLinkResponse,
  RevokedInstallLinkResponse,
  toInstallLinkResponse,
  toInstallLinkTerms,
  toShownOnce,
} from '../api/install-link.dto.js';
import { InstallLinksService } from '../install-links.service.js';

/** Install links in the portal. Creating one shows install data, so it needs what `install-data` needs (D25). */
@ApiTags('Esims')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1/esims/:id/install-links')
export class PortalInstallLinksController {
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
      'Returns the address of a page that shows the traveler how to install the eSIM. Only this response shows `url` and `access_code`. A live eSIM needs a session younger than 15 minutes.',
    refusals: ['not_supported', 'esim_expired', 'esim_not_ready', 'limit_reached', 'step_up_required'],
  })
  @NeedsScope('orders:read')
  async createInstallLink(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('esim')) esimId: string,
    @Body() body?: CreateInstallLinkDto,
  ): Promise<RenderedResponse> {
    const terms = toInstallLinkTerms(body);
    return this.idempotent.execute(key, async (tx) => {
      const esim = await this.links.getEsim(caller.anyMode, esimId, tx);
      if (esim.mode === 'live') caller.assertYoung();
      return toShownOnce(await this.links.create(tx, esim, terms, by));
    });
  }

  @Get()
  @RespondsPage(InstallLinkResponse, {
    summary: 'List the install links of an eSIM, newest first',
    description: 'Returns the links without their addresses. Expired links stay listed for a while.',
  })
  @NeedsScope('orders:read')
  async listInstallLinks(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) esimId: string,
    @Query() query: ListQueryDto,
  ): Promise<ListResponse<InstallLinkResponse>> {
    const page = await this.links.list(caller.anyMode, esimId, toListOptions(query));
    return new ListResponse(mapPage(page, toInstallLinkResponse));
  }

  @Delete(':lid')
  @Responds(RevokedInstallLinkResponse, {
    summary: 'Revoke an install link',
    description:
      'The page of the link is a 404 from then on. An eSIM that is already on a phone keeps working.',
  })
  @NeedsScope('orders:read')
  async revokeInstallLink(
    @Author() by: ChangeAuthor,
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('esim')) esimId: string,
    @Param('lid', PathId('ilk')) id: string,
  ): Promise<RevokedInstallLinkResponse> {
    await this.transactions.run((tx) => this.links.revoke(tx, caller.anyMode, { esimId, id }, by));
    return { id, revoked: true };
  }
}
