import { Injectable } from '@nestjs/common';
import { type AlertEntity, EndedAlerts } from '../../alerts/index.js';
import type { WebhookEndpointEntity } from '../webhook-endpoint.entity.js';
import { WebhookEndpointsRepository } from '../webhook-endpoints.repository.js';

/** Resolves the alerts of endpoints that are no longer blocked or disabled, or are deleted. */
@Injectable()
export class EndedEndpointAlerts {
  constructor(
    private readonly endpoints: WebhookEndpointsRepository,
    ended: EndedAlerts,
  ) {
    ended.start('endpoint.blocked', (alerts) => this.selectEnded(alerts, ({ blocked }) => blocked));
    ended.start('endpoint.disabled', (alerts) => this.selectEnded(alerts, ({ enabled }) => !enabled));
  }

  private async selectEnded(
    alerts: readonly AlertEntity[],
    persists: (endpoint: WebhookEndpointEntity) => boolean,
  ): Promise<readonly AlertEntity[]> {
    const endpoints = await this.endpoints.listExisting(alerts.map(({ subjectId }) => subjectId));
    return alerts.filter(({ subjectId }) => {
      const endpoint = endpoints.get(subjectId);
      return endpoint === undefined || !persists(endpoint);
    });
  }
}
