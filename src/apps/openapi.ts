import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { Registry } from 'prom-client';
import { NO_TRACER } from '../infra/tracing/index.js';
import { completeDocument, securitySchemeOf } from '../infra/http/openapi/document/complete-document.js';
import type { Port } from '../infra/http/openapi/document/operation.js';
import { AdminModule } from './admin.app.js';
import { ApiModule } from './api.app.js';
import { PortalModule } from './portal.app.js';
import { showRecordedAnswers } from './openapi-answers.js';
import { eventSchemas, eventWebhooks } from './openapi-events.js';
import type { ProcessResources } from './process-resources.js';

export type Documents = Readonly<Record<Port, OpenAPIObject>>;

interface Presentation {
  readonly title: string;
  readonly description: string;
  /** Location of the credential: the `Authorization` header or a cookie. */
  readonly scheme: 'bearer' | 'cookie';
  readonly credential: string;
  readonly address: string;
  /** Description of each tag, in reference order. */
  readonly tags: Readonly<Record<string, string>>;
}

/** OpenAPI Generator rejects a license without an SPDX identifier. */
const LICENSE = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' };

/** Display names of tags whose names generators turn into class names. */
const DISPLAY_NAMES: Readonly<Record<string, string>> = { Esims: 'eSIMs', Topups: 'Top-ups' };

const PARTNER_INTRODUCTION = `Catalog, orders, eSIMs and events for partners.

- **Modes.** The key decides: \`svc_sk_test_...\` works on Sandbox (mock data, no charges), \`svc_sk_live_...\` on Live.
- **Responses.** \`{ "request_id", "data" }\`; lists add \`has_more\` and \`next_cursor\`. \`X-Request-Id\` repeats the id.
- **Errors.** \`application/problem+json\`; branch on \`code\`. Unknown fields and parameters are rejected.
- **Idempotency.** Every POST needs an \`Idempotency-Key\` of 8 to 128 letters, digits, \`-\` or \`_\`. A retry with the
  same key and request within 24 hours gets the original response, with \`Idempotent-Replayed: true\`.
- **Limits.** 60 requests per minute and key, bursts up to 120; beyond that 429 with \`Retry-After\`.
- **Values.** Times are RFC 3339 in UTC with milliseconds. Money is \`{ "amount", "currency" }\` in integer minor units.
  Data is in bytes; null when unlimited. \`data_label\` and \`data_unit\` say how to show it.
- **Growth.** Responses may get new fields and new enum values. Ignore those that you do not know.`;

const ADMIN_INTRODUCTION = `The internal API of the portal team. It is never exposed publicly.

- **Who calls.** A token of \`ADMIN_TOKENS\`; its name and the optional \`X-Actor\` go to the audit log.
- **Scopes.** \`ADMIN_TOKEN_SCOPES\` limits a token to its scopes. Other calls get 403 \`forbidden\`, which names the
  missing scope. Tokens that it does not name have all scopes.
- **Responses, errors and lists** are those of the partner API. \`Idempotency-Key\` is optional on a POST.
- **Shown once.** Only the response that created a key or signing secret contains it. A replay of that response has null.`;

const PORTAL_INTRODUCTION = `The API behind the pages of the partner portal. It shows one partner's data, in the modes of the session.

- **Who calls.** A session. \`POST /internal/v1/partners/{pid}/portal-sessions\` of the admin API creates a link, and the
  page exchanges its code for a cookie. The session determines the partner; no call can name another.
- **Scopes.** Each operation needs a scope of the session, else 403 \`forbidden\`.
- **Modes.** A list needs a \`mode\`. A mode that the session does not include gets 403.
- **Step-up.** These actions need a session younger than 15 minutes, else 403 \`step_up_required\`: creating, rotating or
  revoking a live key; showing the install data of a live eSIM; creating, disabling or deleting a live endpoint, changing
  its URL, or removing event types or signature schemes; rotating a signing secret; discarding held deliveries;
  resending more than 1,000 events within an hour.
- **Pace.** All sessions of a partner together can resend, replay and test at most 60 times per minute, else 429
  \`rate_limited\`.
- **Changes** are accepted only from the portal's own pages, as \`application/json\`. The audit log records each one.
- **Another session.** A page sends the id of its session in \`X-Portal-Session\`. If the cookie belongs to another
  session, the call gets 409 \`session_changed\`.
- **Responses, errors and lists** are those of the partner API.`;

const PRESENTATIONS: Readonly<Record<Port, Presentation>> = {
  partner: {
    title: 'Partner eSIM Provisioning API',
    description: PARTNER_INTRODUCTION,
    scheme: 'bearer',
    credential: 'An API key: `svc_sk_test_...` (Sandbox) or `svc_sk_live_...` (Live).',
    address: 'http://localhost:3000',
    tags: {
      Account: 'The partner and the limits of a key.',
      Catalog: 'The packages on sale, with their prices.',
      Orders: 'Purchases of new eSIMs.',
      Topups: 'Purchases of more data or days for an eSIM.',
      Esims: 'Issued eSIMs: install data, status and usage.',
      Refunds: 'Requests to refund an eSIM, which a person decides.',
      Sandbox: 'Simulated devices, for Sandbox keys only.',
      Events: 'Every event, exactly as webhooks deliver it.',
      Balance: 'The wallet and its transactions.',
      Requests: "The partner's API calls, for debugging.",
      Webhooks: "Webhooks that the service sends to the partner's endpoints.",
    },
  },
  admin: {
    title: 'Internal admin API of the Partner eSIM Provisioning Service',
    description: ADMIN_INTRODUCTION,
    scheme: 'bearer',
    credential: 'A token of `ADMIN_TOKENS`.',
    address: 'http://localhost:3001',
    tags: {
      Partners: 'Partners and their status.',
      'Portal sessions': 'Sessions of the partner portal.',
      'API keys': "Keys for a partner's calls.",
      'Audit log': 'Who changed what, and when.',
      Alerts: 'Conditions that need attention.',
      'Call log': "Partners' API calls.",
      Support: "A partner's objects, purchases that need a review, and refund requests.",
      Wallets: 'Balances, deposits and adjustments.',
      Catalog: 'The prices of a partner.',
      Wholesalers: 'The wholesalers and their catalogs.',
      'Webhook endpoints': 'The URLs that receive events.',
      'Webhook deliveries': 'Events sent to an endpoint, with every attempt.',
      'Webhook replays': 'Resending the events of a time range.',
    },
  },
  portal: {
    title: 'API of the partner portal',
    description: PORTAL_INTRODUCTION,
    scheme: 'cookie',
    credential: 'The cookie of a session; `__Host-portal` where TLS is in front.',
    address: 'http://localhost:3004',
    tags: {
      Session: 'The session of the browser.',
      Overview: 'Figures of a period, and what needs attention.',
      'API keys': "Keys for the partner's calls.",
      Requests: "The partner's API calls.",
      Catalog: 'The packages on sale, with their prices.',
      Orders: 'Purchases of new eSIMs.',
      Esims: 'Issued eSIMs.',
      Topups: 'Purchases of more data or days for an eSIM.',
      Refunds: 'Requests to refund an eSIM, which a person decides.',
      Events: 'Every event, exactly as webhooks deliver it.',
      Balance: 'The wallet and its transactions.',
      'Webhook endpoints': 'The URLs that receive events.',
      'Webhook deliveries': 'Events sent to an endpoint, with every attempt, and replays.',
      Explanations: 'Why a delivery fails and how to fix it.',
      Search: 'Everything that a short text may name.',
    },
  },
};

/** The OpenAPI 3.1 documents of the APIs, read from the code; needs neither a database nor a port (D3). */
export async function createDocuments(): Promise<Documents> {
  const partner = await createDocument('partner', ApiModule.of(previewProcess()));
  const admin = await createDocument('admin', AdminModule.of(previewProcess()));
  const portal = await createDocument('portal', PortalModule.of(previewProcess()));
  return { partner, admin, portal };
}

async function createDocument(port: Port, module: DynamicModule): Promise<OpenAPIObject> {
  const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), {
    preview: true,
    abortOnError: false,
    logger: ['error'],
  });
  try {
    const document = SwaggerModule.createDocument(app, describe(port), {
      operationIdFactory: (_controller, handler) => handler,
    });
    return finish(document, port);
  } finally {
    await app.close();
  }
}

function describe(port: Port): Omit<OpenAPIObject, 'paths'> {
  const { title, description, scheme, credential, address, tags } = PRESENTATIONS[port];
  const document = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle(title)
    .setDescription(description)
    .setVersion('1.0.0')
    .addServer('{base_url}', 'The address of the service. Paths begin with the version.', {
      base_url: { default: address },
    })
    .addSecurity(
      securitySchemeOf(port),
      scheme === 'bearer'
        ? { type: 'http', scheme, description: credential }
        : { type: 'apiKey', in: 'cookie', name: 'portal', description: credential },
    )
    .build();
  return {
    ...document,
    info: { ...document.info, contact: { name: 'Partner support' }, license: LICENSE },
    tags: Object.entries(tags).map(([name, text]) => describeTag(name, text)),
  };
}

function describeTag(name: string, description: string): NonNullable<OpenAPIObject['tags']>[number] {
  const label = DISPLAY_NAMES[name];
  return { name, ...(label === undefined ? {} : { 'x-displayName': label }), description };
}

function finish(document: OpenAPIObject, port: Port): OpenAPIObject {
  Object.assign(((document.components ??= {}).schemas ??= {}), eventSchemas());
  if (port === 'partner') document.webhooks = eventWebhooks(document);
  const complete = completeDocument(document, port);
  if (port === 'partner') showRecordedAnswers(complete);
  return complete;
}

/** Placeholder resources: Nest's preview mode registers providers without creating them, so nothing ever uses these. */
export function previewProcess(): ProcessResources {
  const nothing = {} as unknown;
  const resources: ProcessResources = {
    role: 'all',
    config: nothing as ProcessResources['config'],
    logger: nothing as ProcessResources['logger'],
    dataSource: nothing as ProcessResources['dataSource'],
    edgePool: nothing as ProcessResources['edgePool'],
    pools: [],
    directDataSource: nothing as ProcessResources['directDataSource'],
    contact: nothing as ProcessResources['contact'],
    metrics: new Registry(),
    queue: nothing as ProcessResources['queue'],
    tracer: NO_TRACER,
    of: () => resources,
    close: () => Promise.resolve(),
  };
  return resources;
}
