import { type DynamicModule, Module } from '@nestjs/common';
import { API_DOCUMENT_PATHS, serveApiDocuments } from './api-documents.js';
import { AlertsAdminModule } from '../alerts/index.js';
import { ApiKeysAdminModule } from '../api-keys/index.js';
import { AuditAdminModule } from '../audit/index.js';
import { AdminAuthModule, AdminAuthenticator } from '../auth/index.js';
import { CallLogAdminModule } from '../call-log/index.js';
import { EsimsAdminModule } from '../esims/index.js';
import { EventsAdminModule } from '../events/index.js';
import { PartnersAdminModule } from '../partners/index.js';
import { SupportAdminModule } from '../support/index.js';
import { WalletAdminModule } from '../wallet/index.js';
import { CatalogAdminModule } from '../catalog/index.js';
import { WholesaleAdminModule } from '../wholesale/index.js';
import { WebhooksAdminModule, WebhooksCoreModule } from '../webhooks/index.js';
import { type RunningHttpApp, startHttpApp } from './http-app.js';
import { HttpPipelineModule, PlatformModule } from './platform.module.js';
import { OPS_PATHS, type OpsProbe } from './ops.js';
import type { ProcessResources } from './process-resources.js';

/** The internal admin API of the portal team; never routed publicly (D3). */
@Module({
  imports: [
    HttpPipelineModule,
    AdminAuthModule,
    PartnersAdminModule,
    ApiKeysAdminModule,
    AuditAdminModule,
    AlertsAdminModule,
    CallLogAdminModule,
    SupportAdminModule,
    EsimsAdminModule,
    EventsAdminModule,
    WalletAdminModule,
    CatalogAdminModule,
    WholesaleAdminModule,
    WebhooksCoreModule,
    WebhooksAdminModule,
  ],
})
export class AdminModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: AdminModule, imports: [PlatformModule.of(process)] };
  }
}

/** Starts the admin API on `ADMIN_HOST:ADMIN_PORT`; with `probe` it also answers the ops paths (all in one). */
export async function startAdmin(process: ProcessResources, probe: OpsProbe | null): Promise<RunningHttpApp> {
  return startHttpApp(process, {
    module: AdminModule.of(process),
    authenticator: AdminAuthenticator,
    listen: process.config.adminApi,
    idempotencyKeyRequired: false,
    anonymousPaths: [...API_DOCUMENT_PATHS, ...(probe ? OPS_PATHS : [])],
    prepare: (fastify) => {
      serveApiDocuments(fastify);
      probe?.serveOn(fastify);
    },
  });
}
