import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { AlertsAdminModule } from '../alerts/index.js';
import { ApiKeysAdminModule } from '../api-keys/index.js';
import { AuditAdminModule } from '../audit/index.js';
import {
  AdminAuthenticator,
  AdminAuthModule,
  AdminTokenGuard,
  assertEveryRouteNeedsAScope,
} from '../auth/index.js';
import { CallLogAdminModule } from '../call-log/index.js';
import { CatalogAdminModule } from '../catalog/index.js';
import { EsimsAdminModule } from '../esims/index.js';
import { EventsAdminModule } from '../events/index.js';
import { PACKAGE_ROOT } from '../infra/package-root.js';
import { LookupsAdminModule } from '../lookups/index.js';
import { PartnerAdminModule } from '../partner-admin/index.js';
import { PortalSessionsAdminModule } from '../portal-sessions/index.js';
import { RefundsAdminModule } from '../refunds/index.js';
import { SupportAdminModule } from '../support/index.js';
import { WalletAdminModule } from '../wallet/index.js';
import { WebhooksAdminModule, WebhooksCoreModule } from '../webhooks/index.js';
import { CatalogSyncAdminModule } from '../catalog-sync/index.js';
import { type RunningHttpApp, startHttpApp } from './http-app.js';
import { OPS_PATHS, type OpsProbe } from './ops.js';
import { PartitionsModule } from './partitions.js';
import { HttpPipelineModule, PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';

/** The internal admin API of the portal team; never routed publicly (D3). */
@Module({
  imports: [
    HttpPipelineModule,
    AdminAuthModule,
    PartnerAdminModule,
    PortalSessionsAdminModule,
    ApiKeysAdminModule,
    AuditAdminModule,
    AlertsAdminModule,
    CallLogAdminModule,
    SupportAdminModule,
    RefundsAdminModule,
    EsimsAdminModule,
    EventsAdminModule,
    LookupsAdminModule,
    WalletAdminModule,
    CatalogAdminModule,
    CatalogSyncAdminModule,
    WebhooksCoreModule,
    WebhooksAdminModule,
  ],
})
export class AdminModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: AdminModule, imports: [PlatformModule.of(process), PartitionsModule.of('ensure')] };
  }
}

/**
 * Starts the admin API on `ADMIN_HOST:ADMIN_PORT`. With `probe`, when all roles share a process, it also serves the ops
 * paths.
 */
export async function startAdmin(process: ProcessResources, probe: OpsProbe | null): Promise<RunningHttpApp> {
  return startHttpApp(process, {
    module: AdminModule.of(process),
    port: 'admin',
    authenticator: AdminAuthenticator,
    listen: process.config.adminApi,
    idempotencyKeyRequired: false,
    anonymousPaths: [...API_DOCUMENT_PATHS, ...(probe ? OPS_PATHS : [])],
    prepare: (app, fastify) => {
      assertEveryRouteNeedsAScope(app.get(DiscoveryService, { strict: false }), AdminTokenGuard);
      serveApiDocuments(fastify);
      probe?.serveOn(fastify);
    },
  });
}

const DOCUMENTS = ['partner', 'admin', 'portal'] as const;
const FOLDER = path.join(PACKAGE_ROOT.folder, 'docs/openapi');

/** Paths of the APIs' OpenAPI documents on the admin port. */
const API_DOCUMENT_PATHS = DOCUMENTS.map((name) => `/openapi/${name}.json`);

/** Serves the committed documents, which `npm run check` compares with the code. */
function serveApiDocuments(fastify: FastifyInstance): void {
  for (const name of DOCUMENTS) {
    fastify.get(`/openapi/${name}.json`, async (_request, reply) =>
      reply.header('content-type', 'application/json; charset=utf-8').send(readDocument(name)),
    );
  }
}

function readDocument(name: string): Buffer {
  try {
    return readFileSync(path.join(FOLDER, `${name}.json`));
  } catch {
    throw new Error(`docs/openapi/${name}.json is missing from this installation`);
  }
}
