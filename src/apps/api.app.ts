import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import {
  assertEveryRouteNeedsAScope,
  BearerKeyGuard,
  PartnerAuthModule,
  PartnerAuthenticator,
} from '../auth/index.js';
import { CallLogApiModule } from '../call-log/index.js';
import { CatalogApiModule } from '../catalog/index.js';
import { EsimsApiModule } from '../esims/index.js';
import { InstallLinksApiModule } from '../install-links/index.js';
import { EventsApiModule } from '../events/index.js';
import { OrdersApiModule } from '../orders/index.js';
import { RefundsApiModule } from '../refunds/index.js';
import { TopupsApiModule } from '../topups/index.js';
import { WalletApiModule } from '../wallet/index.js';
import { WebhooksCoreModule } from '../webhooks/index.js';
import { type RunningHttpApp, startHttpApp } from './http-app.js';
import { PartitionsModule } from './partitions.js';
import { HttpPipelineModule, PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';

/** The partner API: every route needs a key with its scope (D3, D62). */
@Module({
  imports: [
    HttpPipelineModule,
    PartnerAuthModule,
    CatalogApiModule,
    OrdersApiModule,
    TopupsApiModule,
    RefundsApiModule,
    EsimsApiModule,
    InstallLinksApiModule,
    EventsApiModule,
    WalletApiModule,
    CallLogApiModule,
    WebhooksCoreModule,
  ],
})
export class ApiModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: ApiModule, imports: [PlatformModule.of(process), PartitionsModule.of('ensure')] };
  }
}

/** Starts the partner API on `HOST:PORT`. */
export async function startApi(process: ProcessResources): Promise<RunningHttpApp> {
  return startHttpApp(process, {
    module: ApiModule.of(process),
    port: 'partner',
    authenticator: PartnerAuthenticator,
    listen: process.config.partnerApi,
    idempotencyKeyRequired: true,
    prepare: (app) =>
      assertEveryRouteNeedsAScope(app.get(DiscoveryService, { strict: false }), BearerKeyGuard),
  });
}
