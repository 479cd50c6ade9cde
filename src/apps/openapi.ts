import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { completeDocument, type Port, SECURITY_SCHEME } from '../infra/http/openapi/document/index.js';
import { AdminModule } from './admin.app.js';
import { ApiModule } from './api.app.js';
import { eventSchemas } from './openapi/event-schemas.js';
import { eventWebhooks } from './openapi/event-webhooks.js';
import { ADMIN_INTRODUCTION, PARTNER_INTRODUCTION } from './openapi/introductions.js';
import { previewProcess } from './openapi/preview-process.js';

export { describeDrift } from './openapi/drift.js';

export type Documents = Readonly<Record<Port, OpenAPIObject>>;

interface Presentation {
  readonly title: string;
  readonly description: string;
  readonly credential: string;
  readonly address: string;
}

const PRESENTATIONS: Readonly<Record<Port, Presentation>> = {
  partner: {
    title: 'Partner eSIM Provisioning API',
    description: PARTNER_INTRODUCTION,
    credential: 'An API key: `svc_sk_test_...` (Sandbox) or `svc_sk_live_...` (Live).',
    address: 'http://localhost:3000',
  },
  admin: {
    title: 'Internal admin API of the Partner eSIM Provisioning Service',
    description: ADMIN_INTRODUCTION,
    credential: 'A token of `ADMIN_TOKENS`.',
    address: 'http://localhost:3001',
  },
};

/** The OpenAPI 3.1 documents of both APIs, read from the code; needs neither a database nor a port (D3). */
export async function createDocuments(): Promise<Documents> {
  const partner = await createDocument('partner', ApiModule.of(previewProcess()));
  const admin = await createDocument('admin', AdminModule.of(previewProcess()));
  return { partner, admin };
}

async function createDocument(port: Port, module: DynamicModule): Promise<OpenAPIObject> {
  const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), {
    preview: true,
    abortOnError: false,
    logger: ['error'],
  });
  try {
    const document = SwaggerModule.createDocument(app, describe(PRESENTATIONS[port]), {
      operationIdFactory: (_controller, handler) => handler,
    });
    return finish(document, port);
  } finally {
    await app.close();
  }
}

function describe({ title, description, credential, address }: Presentation): Omit<OpenAPIObject, 'paths'> {
  return new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle(title)
    .setDescription(description)
    .setVersion('1.0.0')
    .addServer('{base_url}', 'Where the service is reached; the paths begin with the version.', {
      base_url: { default: address },
    })
    .addSecurity(SECURITY_SCHEME, { type: 'http', scheme: 'bearer', description: credential })
    .build();
}

function finish(document: OpenAPIObject, port: Port): OpenAPIObject {
  Object.assign(((document.components ??= {}).schemas ??= {}), eventSchemas());
  if (port === 'partner') document.webhooks = eventWebhooks(document);
  return completeDocument(document, port);
}
