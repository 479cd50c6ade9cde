import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { ApiKeysPortalModule } from '../api-keys/index.js';
import {
  assertEveryRouteNeedsAScope,
  PortalAuthenticator,
  PortalAuthModule,
  PortalSessionGuard,
} from '../auth/index.js';
import { CallLogPortalModule } from '../call-log/index.js';
import { CatalogPortalModule } from '../catalog/index.js';
import { EsimsPortalModule } from '../esims/index.js';
import { InstallLinksPortalModule } from '../install-links/index.js';
import { EventsPortalModule } from '../events/index.js';
import { LookupsPortalModule } from '../lookups/index.js';
import { OrdersPortalModule } from '../orders/index.js';
import { OverviewPortalModule } from '../overview/index.js';
import { PartnerPortalModule } from '../partner-admin/index.js';
import { PortalSessionsPortalModule } from '../portal-sessions/index.js';
import { RefundsPortalModule } from '../refunds/index.js';
import { TopupsPortalModule } from '../topups/index.js';
import { WalletPortalModule } from '../wallet/index.js';
import { WebhooksCoreModule, WebhooksPortalModule } from '../webhooks/index.js';
import { type RunningHttpApp, startHttpApp } from './http-app.js';
import { PartitionsModule } from './partitions.js';
import { HttpPipelineModule, PlatformModule } from './platform.module.js';
import { isPortalPage, servePortalPages } from './portal-pages.js';
import type { ProcessResources } from './process-resources.js';

/** The partner portal: a partner's users in a browser, each in a session (D50). */
@Module({
  imports: [
    HttpPipelineModule,
    PortalAuthModule,
    PortalSessionsPortalModule,
    ApiKeysPortalModule,
    CallLogPortalModule,
    CatalogPortalModule,
    OrdersPortalModule,
    EsimsPortalModule,
    InstallLinksPortalModule,
    TopupsPortalModule,
    RefundsPortalModule,
    PartnerPortalModule,
    LookupsPortalModule,
    EventsPortalModule,
    WalletPortalModule,
    WebhooksCoreModule,
    WebhooksPortalModule,
    OverviewPortalModule,
  ],
})
export class PortalModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: PortalModule, imports: [PlatformModule.of(process), PartitionsModule.of('ensure')] };
  }
}

/** Starts the portal on `PORTAL_HOST:PORTAL_PORT`: its API, and the pages that call it. */
export async function startPortal(process: ProcessResources): Promise<RunningHttpApp> {
  const { config, logger } = process;
  // TLS ends in front of this port. A terminator that adds no header, such as a layer 4 load balancer, is fine here.
  if (config.portal.secure && config.trustProxyHops === 0)
    logger.warn(
      { event: 'portal.proxies_not_trusted' },
      'PORTAL_URL is https but TRUST_PROXY is 0, so every browser appears with the address of the proxy. Set TRUST_PROXY to the number of proxies that append to X-Forwarded-For',
    );
  return startHttpApp(process, {
    module: PortalModule.of(process),
    port: 'portal',
    authenticator: PortalAuthenticator,
    listen: config.portal.listen,
    idempotencyKeyRequired: false,
    isPublicPath: isPortalPage,
    prepare: (app, fastify) => {
      assertEveryRouteNeedsAScope(app.get(DiscoveryService, { strict: false }), PortalSessionGuard);
      servePortalPages(fastify, config.portal);
    },
  });
}
