import { Body, Controller, Get, Param, Req, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Author, type ChangeAuthor } from '../../audit/index.js';
import { AdminTokenGuard, NeedsScope } from '../../auth/index.js';
import { ListSlots, PathId } from '../../infra/http/index.js';
import { Responds } from '../../infra/http/openapi/responds.js';
import {
  IdempotencyKeyParam,
  type IdempotencyKey,
  IdempotentExecutor,
  IdempotentPost,
  type RenderedResponse,
} from '../../infra/idempotency/index.js';
import { ReplayEvents } from '../replay-events.js';
import { ReplayEventsDto, toReplayCommand } from './webhook-delivery-requests.dto.js';
import { toPreviewResponse, toReplayResponse, WebhookReplayResponse } from './webhook-replay.response.js';

/** Replays: many events sent again as one tracked job (D33). */
@ApiTags('Webhook replays')
@UseGuards(AdminTokenGuard)
@Controller('internal/v1')
export class WebhookReplaysController {
  constructor(
    private readonly replays: ReplayEvents,
    private readonly idempotent: IdempotentExecutor,
    private readonly slots: ListSlots,
  ) {}

  @IdempotentPost('partners/:pid/webhook-endpoints/:id/replay', {
    status: 202,
    response: WebhookReplayResponse,
    summary: 'Send the events of a time range again',
    description: 'Creates new deliveries in the background. With `dry_run` it only counts them.',
    location: true,
  })
  @NeedsScope('webhooks:replay')
  async startReplay(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() idempotencyKey: IdempotencyKey,
    @Param('pid', PathId('ptn')) partnerId: string,
    @Param('id', PathId('whe')) id: string,
    @Body() body: ReplayEventsDto,
    @Req() request: FastifyRequest,
  ): Promise<RenderedResponse> {
    const key = { partnerId, id };
    const command = toReplayCommand(body);
    if (body.dry_run === true) {
      // It reads as much as a list does.
      return this.slots.read(request, () =>
        this.idempotent.execute(idempotencyKey, async (tx) => ({
          data: toPreviewResponse(await this.replays.preview(tx, key, command)),
        })),
      );
    }
    return this.idempotent.execute(idempotencyKey, async (tx) => {
      const started = await this.replays.start(tx, by, key, command);
      const location = `/internal/v1/replays/${started.replay.id}`;
      return { data: toReplayResponse(started), location };
    });
  }

  @Get('replays/:id')
  @Responds(WebhookReplayResponse, {
    summary: 'Get a replay',
    description: 'Returns how many deliveries the replay has created and how many are pending.',
  })
  @NeedsScope('webhooks:read')
  async getReplay(@Param('id', PathId('rpl')) id: string): Promise<WebhookReplayResponse> {
    return toReplayResponse(await this.replays.get(id));
  }

  @IdempotentPost('replays/:id/cancel', {
    status: 200,
    response: WebhookReplayResponse,
    summary: 'Cancel a replay',
    description: 'Discards the deliveries of the replay that are not sent yet.',
    refusals: ['conflict'],
  })
  @NeedsScope('webhooks:replay')
  async cancelReplay(
    @Author() by: ChangeAuthor,
    @IdempotencyKeyParam() key: IdempotencyKey,
    @Param('id', PathId('rpl')) id: string,
  ): Promise<RenderedResponse> {
    return this.idempotent.execute(key, async (tx) => ({
      data: toReplayResponse(await this.replays.cancel(tx, by, id)),
    }));
  }
}
