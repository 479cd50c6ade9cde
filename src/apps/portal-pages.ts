import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { DAY_MS } from '../common/durations.js';
import type { PortalConfig } from '../config/index.js';
import { PACKAGE_ROOT } from '../infra/package-root.js';

const API = '/portal/';
/** Excludes paths whose first segment belongs to the API. */
const FIRST_SEGMENT = '/:page(^(?!portal$).+$)';
const YEAR_MS = 365 * DAY_MS;

/**
 * Whether a GET requests a page of the portal, which contains no data and needs no session. Decodes first, because the
 * router treats `/%70ortal/v1/session` as the API too.
 */
export function isPortalPage(pathname: string): boolean {
  const path = decoded(pathname);
  return path !== null && path !== '/portal' && !path.startsWith(API);
}

/** Null when the percent-encoding is malformed. */
function decoded(pathname: string): string | null {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return null;
  }
}

/**
 * Serves the built `portal/`. Asset names contain a hash of their content, so they never change. Every other path
 * returns the one page, whose router reads the address.
 */
export function servePortalPages(fastify: FastifyInstance, portal: PortalConfig): void {
  const root = portalFolder();
  const headers = pageHeaders(portal);
  if (root !== null)
    void fastify.register(fastifyStatic, { root, serve: false, preCompressed: true, cacheControl: false });
  const page = (reply: FastifyReply): FastifyReply =>
    root === null || !existsSync(path.join(root, 'index.html'))
      ? reply.status(503).headers(headers).type('text/html; charset=utf-8').send(NOT_BUILT)
      : reply.headers(headers).sendFile('index.html');
  fastify.get('/assets/*', (request, reply) => {
    const name = (request.params as { readonly '*': string })['*'];
    if (root === null || !/^[\w.-]+$/.test(name) || !existsSync(path.join(root, 'assets', name)))
      return reply.status(404).headers(headers).type('text/plain; charset=utf-8').send('File not found.\n');
    return reply.headers({ ...FILE_HEADERS, 'cache-control': IMMUTABLE }).sendFile(`assets/${name}`);
  });
  const reference = root === null ? null : referenceHeaders(root);
  if (reference !== null)
    fastify.get('/reference', (_request, reply) => reply.headers(reference).sendFile(REFERENCE));
  for (const route of ['/', FIRST_SEGMENT, `${FIRST_SEGMENT}/*`])
    fastify.get(route, (_request, reply) => page(reply));
}

/** The API reference that `npm run generate` writes, without scripts and with inline style. */
const REFERENCE = 'reference.html';

/** Headers of the API reference, which permit only its own style; null if the build did not copy it. */
function referenceHeaders(root: string): Readonly<Record<string, string>> | null {
  const file = path.join(root, REFERENCE);
  if (!existsSync(file)) return null;
  const [, style = ''] = /<style>([^]*?)<\/style>/.exec(readFileSync(file, 'utf8')) ?? [];
  const digest = createHash('sha256').update(style).digest('base64');
  return {
    ...FILE_HEADERS,
    'content-security-policy': `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  };
}

const IMMUTABLE = `public, max-age=${YEAR_MS / 1_000}, immutable`;

/** Null if the pages were not built. */
function portalFolder(): string | null {
  const folder = path.join(PACKAGE_ROOT.folder, 'dist/portal');
  return existsSync(path.join(folder, 'assets')) ? folder : null;
}

const FILE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

/** Only our own files run, nothing is sent elsewhere, and only named sites may frame the page (D50). */
function pageHeaders({ frameAncestors, brand }: PortalConfig): Readonly<Record<string, string>> {
  const logo = brand.logoUrl?.startsWith('https:') ? ` ${new URL(brand.logoUrl).origin}` : '';
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data:${logo}`,
    "connect-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors.length > 0 ? frameAncestors.join(' ') : "'none'"}`,
    "require-trusted-types-for 'script'",
  ];
  return {
    ...FILE_HEADERS,
    'content-security-policy': policy.join('; '),
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cache-control': 'no-store',
  };
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<title>The portal is not built</title>
<h1>The portal is not built</h1>
<p>The portal API is running, but its pages are missing. Run <code>npm run build</code> with the development dependencies installed, then restart the portal.</p>
</html>
`;
