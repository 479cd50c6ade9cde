import { existsSync, readdirSync } from 'node:fs';
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

type Headers = Readonly<Record<string, string>>;

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
  serveDocs(fastify, root, headers);
  for (const route of ['/', FIRST_SEGMENT, `${FIRST_SEGMENT}/*`])
    fastify.get(route, (_request, reply) => page(reply));
}

/** Documentation for partners, which `scripts/site` renders. Each page is also Markdown, at its address with `.md`. */
function serveDocs(fastify: FastifyInstance, root: string | null, pageHeaders: Headers): void {
  const files = root === null ? new Map<string, string>() : docsFiles(root);
  const headers = { ...pageHeaders, 'cache-control': 'no-cache' };
  const send = (reply: FastifyReply, file: string): FastifyReply =>
    reply
      .headers(headers)
      .type(TYPES[path.extname(file)] ?? TEXT)
      // Without this option, a TypeScript file would be served as video/mp2t.
      .sendFile(file, { contentType: false });
  const missing = files.get('/docs/404');
  fastify.get('/docs/*', (request, reply) => {
    const { '*': name } = request.params as { readonly '*': string };
    const file = files.get(`/docs/${name.replace(/\/$/, '')}`);
    if (file !== undefined) return send(reply, file);
    return missing === undefined
      ? reply.status(404).headers(headers).type(TEXT).send('Page not found.\n')
      : send(reply.status(404), missing);
  });
  for (const address of ['/llms.txt', '/llms-full.txt'])
    if (files.has(address)) fastify.get(address, (_request, reply) => send(reply, address.slice(1)));
  for (const [from, to] of MOVED) fastify.get(from, (_request, reply) => reply.redirect(to));
}

const MOVED = [
  ['/docs', '/docs/guides'],
  ['/docs/', '/docs/guides'],
  ['/reference', '/docs/reference'],
] as const;

const TEXT = 'text/plain; charset=utf-8';

/** Types by extension. Programs in other languages are text to read. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
};

/** The built files by address. A lookup cannot leave the folder, whatever the address contains. */
function docsFiles(root: string): ReadonlyMap<string, string> {
  const names = existsSync(path.join(root, 'docs'))
    ? readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map(
        (name) => `docs/${name}`,
      )
    : [];
  const files = [...names, 'llms.txt', 'llms-full.txt'].filter(
    (name) => path.extname(name) !== '' && !/\.(gz|br)$/.test(name) && existsSync(path.join(root, name)),
  );
  return new Map(files.map((name) => [`/${name.replace(/\.html$/, '')}`, name]));
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
function pageHeaders({ frameAncestors, brand }: PortalConfig): Headers {
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
