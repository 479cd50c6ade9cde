import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import { DAY_MS } from '../../common/durations.js';

const STYLES = readFileSync(path.join(import.meta.dirname, 'assets/install.css'));
const HASH = createHash('sha256').update(STYLES).digest('hex').slice(0, 16);
const ACCENT = /^#[0-9a-fA-F]{6}$/;

export const STYLES_PATH = `/assets/install-${HASH}.css`;

/** The style sheet with a partner's color: the page permits no inline style. Null for the default color. */
export function accentPath(accent: string | null): string | null {
  return accent !== null && ACCENT.test(accent)
    ? `/assets/accent-${accent.slice(1).toLowerCase()}.css`
    : null;
}

/** Whether a GET requests a file of the page, which contains nothing of any link. */
export function isPageFile(pathname: string): boolean {
  return pathname === STYLES_PATH || /^\/assets\/accent-[0-9a-f]{6}\.css$/.test(pathname);
}

const HEADERS = {
  'content-type': 'text/css; charset=utf-8',
  // The name contains a hash, or the whole content.
  'cache-control': `public, max-age=${(365 * DAY_MS) / 1_000}, immutable`,
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

/** Adds the routes of the page's files. */
export function servePageFiles(fastify: FastifyInstance): void {
  fastify.get(STYLES_PATH, (_request, reply) => reply.headers(HEADERS).send(STYLES));
  fastify.get('/assets/accent-:color(^[0-9a-f]{6}).css', (request, reply) => {
    const { color } = request.params as { readonly color: string };
    return reply.headers(HEADERS).send(`:root { --brand: #${color}; }\n`);
  });
}
