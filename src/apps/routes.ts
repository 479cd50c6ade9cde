import { type DynamicModule, RequestMethod } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { type RouteHandler, routeHandlers } from '../infra/http/index.js';
import { isIdempotent } from '../infra/idempotency/index.js';
import { AdminModule, API_DOCUMENT_PATHS } from './admin.app.js';
import { ApiModule } from './api.app.js';
import { PORTAL_SCOPES } from '../common/scopes.js';
import { type NeededScopes, scopesOf } from '../auth/index.js';
import { PortalModule } from './portal.app.js';
import { previewProcess } from './openapi.js';
import { OPS_PATHS } from './ops.js';

const TITLE = `# Routes

Every route of the service, read from the code by \`npm run routes\`; \`npm run check\` compares. \`docs/openapi\` has what
each takes and answers.

- **Guard**: who must be calling. **Scope**: which rows the call reaches, and what a session of the portal or a token of
  \`ADMIN_TOKENS\` must hold. A token holds all scopes unless \`ADMIN_TOKEN_SCOPES\` names it.
- **Idempotent**: takes effect once per \`Idempotency-Key\`; required on the partner API, honoured on the admin API and the portal.
`;

const COLUMNS = ['Method', 'Path', 'Guard', 'Scope', 'Idempotent', 'Handler'];

/** The text of docs/routes.md, read from the code; needs neither a database nor a port. */
export async function renderRoutes(): Promise<string> {
  const partner = await handlersOf(ApiModule.of(previewProcess()));
  const admin = await handlersOf(AdminModule.of(previewProcess()));
  const portal = await handlersOf(PortalModule.of(previewProcess()));
  const sections = [
    TITLE,
    '## Partner API (`HOST:PORT`)\n',
    toTable(partner.map((route) => toRow(route, partnerScope(route)))),
    '## Internal admin API (`ADMIN_HOST:ADMIN_PORT`)\n',
    toTable([...admin.map((route) => toRow(route, adminScope(route))), ...documentRows()]),
    '## Portal (`PORTAL_HOST:PORTAL_PORT`); every other GET is a page or a file of it\n',
    toTable(portal.map((route) => toRow(route, portalScope(route)))),
    '## Callbacks of providers (`CALLBACK_HOST:CALLBACK_PORT`, in the worker)\n',
    toTable([
      [
        'POST',
        '/callbacks/:provider/:secret',
        'CallbackAuthenticator',
        'provider',
        '',
        'TakeCallback.execute',
      ],
    ]),
    '## Operations (`OPS_HOST:OPS_PORT`; on the admin port when all roles share a process)\n',
    toTable(OPS_PATHS.map((path) => ['GET', path, 'none', 'process', '', 'OpsProbe.answer'])),
  ];
  return `${sections.join('\n')}`;
}

async function handlersOf(module: DynamicModule): Promise<RouteHandler[]> {
  const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), {
    preview: true,
    abortOnError: false,
    logger: ['error'],
  });
  try {
    // Made by hand: Nest's preview makes no provider.
    const discovery = new DiscoveryService(app.get(ModulesContainer));
    const handlers = routeHandlers(discovery);
    return handlers.sort((a, b) => (a.path === b.path ? a.method - b.method : a.path < b.path ? -1 : 1));
  } finally {
    await app.close();
  }
}

function toRow(route: RouteHandler, scope: string): string[] {
  return [
    RequestMethod[route.method],
    route.path,
    route.guards.map(({ name }) => name).join(', '),
    scope,
    isIdempotent(route) ? 'yes' : '',
    `${route.controller.name}.${route.handlerName}`,
  ];
}

/** A partner's key reaches the rows of that partner and of its mode (D14). */
function partnerScope({ guards }: RouteHandler): string {
  return guards.some(({ name }) => name === 'SandboxOnlyGuard') ? 'partner, sandbox' : 'partner and mode';
}

/** A session reaches its partner's rows in its modes, and only with the scope of the route (D50). */
function portalScope({ handler }: RouteHandler): string {
  const needed = scopesOf(handler);
  return needed === null ? 'none' : needed === 'any' ? 'session' : `session, ${toText(needed)}`;
}

/** A token reaches every partner, and only with the scope of the route. */
function adminScope({ path, handler }: RouteHandler): string {
  const reach = path.includes('/partners/:pid') ? 'one partner' : 'all partners';
  return `${reach}, ${toText(scopesOf(handler) ?? 'any')}`;
}

function toText(needed: NeededScopes): string {
  if (needed === 'any') return needed;
  return needed.length === PORTAL_SCOPES.length ? 'any of the portal’s scopes' : needed.join(' or ');
}

function documentRows(): string[][] {
  return API_DOCUMENT_PATHS.map((path) => ['GET', path, 'none', 'none', '', 'serveApiDocuments']);
}

function toTable(rows: readonly (readonly string[])[]): string {
  const lines = [COLUMNS, COLUMNS.map(() => '---'), ...rows.map((row) => row.map(toCell))];
  return `${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

function toCell(text: string): string {
  return text.startsWith('/') ? `\`${text}\`` : text;
}
