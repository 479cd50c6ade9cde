import { Body, Controller, Get, HttpCode, Param, Post, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Caller, NeedsScope, PortalPrincipal, PortalSessionGuard } from '../../auth/index.js';
import { NotFound } from '../../common/errors/index.js';
import { isId } from '../../common/ids.js';
import { PathId } from '../../infra/http/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import { NoIdempotencyKey } from '../../infra/idempotency/index.js';
import { ExplanationResponse, toExplanationResponse } from '../admin/explanation.response.js';
import { FindExplanation } from '../find-explanation.js';
import { SignatureDoctor } from '../signature-doctor.js';
import { OwnedWebhooks } from '../owned-webhooks.js';
import { DiagnosisResponse, SignatureDoctorDto, toDiagnosisResponse } from './signature-doctor.dto.js';

/** Explains why an endpoint receives nothing, and why a receiver rejects a signature. */
@ApiTags('Explanations')
@UseGuards(PortalSessionGuard)
@Controller('portal/v1')
export class PortalExplanationsController {
  constructor(
    private readonly owned: OwnedWebhooks,
    private readonly explanations: FindExplanation,
    private readonly doctor: SignatureDoctor,
  ) {}

  @Get('webhook-endpoints/:id/explanation')
  @NeedsScope('webhooks:read')
  @Responds(ExplanationResponse, {
    summary: 'Explain the state of an endpoint',
    description: 'Says why the endpoint is blocked or disabled, who can fix it, and what happens next.',
  })
  async explainEndpoint(
    @Caller() caller: PortalPrincipal,
    @Param('id', PathId('whe')) id: string,
  ): Promise<ExplanationResponse> {
    const endpoint = await this.owned.endpoint(caller, { partnerId: caller.partnerId, id });
    return toExplanationResponse(await this.explanations.ofEndpoint(endpoint));
  }

  /** Needs no `Idempotency-Key`, because it changes nothing. */
  @Post('signature-doctor')
  @HttpCode(200)
  @NoIdempotencyKey()
  @NeedsScope('webhooks:read')
  @Responds(DiagnosisResponse, {
    summary: 'Diagnose a rejected signature',
    description:
      'Compares a received request with the signature that the service would have sent. Changes nothing.',
  })
  async diagnoseSignature(
    @Caller() caller: PortalPrincipal,
    @Body() { endpoint_id, headers, body, received_at, computed }: SignatureDoctorDto,
  ): Promise<DiagnosisResponse> {
    if (!isId('whe', endpoint_id)) throw new NotFound();
    const endpoint = await this.owned.endpoint(caller, { partnerId: caller.partnerId, id: endpoint_id });
    const { modes } = caller.session;
    const call = {
      headers,
      body,
      receivedAt: received_at === undefined ? null : new Date(received_at),
      computed: computed ?? null,
    };
    return toDiagnosisResponse(await this.doctor.diagnose(endpoint, call, modes));
  }
}
