import { Injectable } from '@nestjs/common';
import { mapPage, type Page } from '../common/page.js';
import type { PartnerScope } from '../common/tenant-scope.js';
import type { ListOptions, Tx } from '../infra/database/index.js';
import {
  type EndpointFigures,
  EndpointStatsRepository,
  type StatsBucket,
} from './endpoint-stats.repository.js';
import type { EndpointStatus, WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** An endpoint with the figures of its deliveries. */
export interface ShownEndpoint {
  readonly endpoint: WebhookEndpointEntity;
  readonly figures: EndpointFigures;
}

/** Statistics windows: total length and length of one bucket. */
export const STATS_WINDOWS = {
  '1h': { seconds: 3_600, stepSeconds: 900 },
  '24h': { seconds: 86_400, stepSeconds: 900 },
  '7d': { seconds: 604_800, stepSeconds: 3_600 },
} as const;
export type StatsWindow = keyof typeof STATS_WINDOWS;

const NONE: EndpointFigures = {
  waiting: 0,
  lastSuccessAt: null,
  failedSinceLastSuccess: 0,
  failing: null,
  lastDay: { delivered: 0, failedAttempts: 0, givenUp: 0 },
};

/**
 * Endpoints as the portal and the portal team see them. A page with its figures takes two statements, whatever its
 * size.
 */
@Injectable()
export class ShowEndpoints {
  constructor(
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly stats: EndpointStatsRepository,
  ) {}

  async of(endpoint: WebhookEndpointEntity, tx?: Tx): Promise<ShownEndpoint> {
    const figures = await this.stats.figuresOf([endpoint.id], tx);
    return { endpoint, figures: figures.get(endpoint.id) ?? NONE };
  }

  /** A partner's endpoints, in one mode or both. */
  async list(scope: PartnerScope, options: ListOptions): Promise<Page<ShownEndpoint>> {
    return this.withFigures(await this.endpoints.listOfPartner(scope, options));
  }

  async listAll(status: EndpointStatus | undefined, options: ListOptions): Promise<Page<ShownEndpoint>> {
    return this.withFigures(await this.endpoints.listAll(status, options));
  }

  async statsOf(endpointId: string, window: StatsWindow): Promise<readonly StatsBucket[]> {
    const { seconds, stepSeconds } = STATS_WINDOWS[window];
    return this.stats.bucketsOf(endpointId, seconds, stepSeconds);
  }

  private async withFigures(page: Page<WebhookEndpointEntity>): Promise<Page<ShownEndpoint>> {
    const figures = await this.stats.figuresOf(page.items.map(({ id }) => id));
    return mapPage(page, (endpoint) => ({ endpoint, figures: figures.get(endpoint.id) ?? NONE }));
  }
}
