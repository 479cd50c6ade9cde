import type { DynamicModule } from '@nestjs/common';
import { HTTP_CODE_METADATA, METHOD_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { describe, expect, it } from 'vitest';
import { AdminModule } from '../../src/apps/admin.app.js';
import { ApiModule } from '../../src/apps/api.app.js';
import { PortalModule } from '../../src/apps/portal.app.js';
import { createDocuments, previewProcess } from '../../src/apps/openapi.js';
import { readOperations } from './reader.js';

const POST = 1;

interface MappedRoutes {
  /** E.g. `POST /v1/orders/{id}/cancel`. */
  readonly routes: readonly string[];
  /** Nest's status of every handler, by name. */
  readonly statuses: ReadonlyMap<string, number>;
}

/** The routes that Nest registers with Fastify, as seen by Fastify. */
async function mappedRoutes(module: DynamicModule): Promise<MappedRoutes> {
  const adapter = new FastifyAdapter();
  const routes: string[] = [];
  adapter.getInstance().addHook('onRoute', ({ method, url }) => {
    for (const name of [method].flat()) {
      if (name !== 'HEAD') routes.push(`${name} ${url.replace(/:(\w+)/g, '{$1}')}`);
    }
  });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    preview: true,
    logger: ['error'],
  });
  await app.init();
  const statuses = statusesOf(app);
  await app.close();
  return { routes, statuses };
}

function statusesOf(app: NestFastifyApplication): ReadonlyMap<string, number> {
  const controllers = [...(app as unknown as PreviewedApp).container.getModules().values()].flatMap(
    (module) => [...module.controllers.values()].map(({ metatype }) => metatype),
  );
  const handlers = controllers.flatMap(({ prototype }) =>
    new MetadataScanner()
      .getAllMethodNames(prototype)
      .map((name) => [name, prototype[name] as object] as const),
  );
  return new Map(
    handlers
      .filter(([, handler]) => Reflect.hasMetadata(METHOD_METADATA, handler))
      .map(([name, handler]) => [
        name,
        (Reflect.getMetadata(HTTP_CODE_METADATA, handler) as number | undefined) ??
          (Reflect.getMetadata(METHOD_METADATA, handler) === POST ? 201 : 200),
      ]),
  );
}

interface PreviewedApp {
  readonly container: {
    getModules(): Map<
      string,
      { controllers: Map<unknown, { metatype: { prototype: Record<string, unknown> } }> }
    >;
  };
}

describe.each([
  ['partner', () => ApiModule.of(previewProcess())],
  ['admin', () => AdminModule.of(previewProcess())],
  ['portal', () => PortalModule.of(previewProcess())],
] as const)('the %s document', (port, module) => {
  it('lists exactly the routes that Nest maps, with their status', async () => {
    const { routes, statuses } = await mappedRoutes(module());
    const operations = readOperations((await createDocuments())[port], port);
    const documented = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(routes.length).toBeGreaterThan(10);
    expect([...documented].sort()).toEqual([...routes].sort());
    for (const { raw, responses, name } of operations) {
      const success = responses.find(({ status }) => status.startsWith('2'));
      expect(success?.status, name).toBe(String(statuses.get(raw.operationId ?? '')));
    }
  });
});
