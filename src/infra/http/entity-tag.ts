import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * Sets ETag and Cache-Control, and answers whether the caller already has this version: `If-None-Match` as a list,
 * `*`, compared weakly (RFC 9110 section 13.1.2).
 */
export function isNotModified(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  void reply
    .header('etag', etag)
    .header('cache-control', 'private, no-cache')
    .header('vary', 'Authorization');
  const header = request.headers['if-none-match'];
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  const wanted = opaque(etag);
  return header.split(',').some((candidate) => opaque(candidate.trim()) === wanted);
}

function opaque(etag: string): string {
  return etag.startsWith('W/') ? etag.slice(2) : etag;
}
