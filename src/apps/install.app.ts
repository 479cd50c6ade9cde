import { type DynamicModule, Module } from '@nestjs/common';
import { toAccessLogLine } from '../call-log/index.js';
import { countCalls } from '../infra/http/index.js';
import {
  errorPage,
  InstallAuthenticator,
  InstallLinksPageModule,
  isPageFile,
  servePageFiles,
} from '../install-links/index.js';
import { type RunningHttpApp, startPort } from './http-app.js';
import { PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';

/** The install page for travelers (D63). */
@Module({ imports: [InstallLinksPageModule] })
export class InstallModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: InstallModule, imports: [PlatformModule.of(process)] };
  }
}

/**
 * Starts the install page on `INSTALL_HOST:INSTALL_PORT`. It reads the database itself, so it works while API and worker
 * are down. Its calls have a log line, but no path and no row, because the path is the credential.
 */
export async function startInstall(process: ProcessResources): Promise<RunningHttpApp> {
  const { config, logger, metrics, tracer } = process;
  const lines = logger.child({}, { redact: { paths: [] } });
  const recorder = countCalls(metrics, 'install', {
    record: (call) => lines.info(toAccessLogLine({ ...call, path: '-' })),
  });
  return startPort(process, {
    port: 'install',
    module: InstallModule.of(process),
    listen: config.install.listen,
    trustProxyHops: config.trustProxyHops,
    tracer,
    idempotencyKeyRequired: null,
    bodies: 'form',
    errorPage,
    isPublicPath: isPageFile,
    services: (app) => ({ authenticator: app.get(InstallAuthenticator, { strict: false }), recorder }),
    prepare: (_app, fastify) => servePageFiles(fastify),
  });
}
