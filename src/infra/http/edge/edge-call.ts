import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { EdgeCall } from './contract.js';

/** The call as the gate and the call log see it. */
export function toEdgeCall(requestId: string, raw: IncomingMessage, trustProxyHops: number): EdgeCall {
  return {
    requestId,
    method: raw.method ?? '-',
    // `url` is what is routed, see `toOriginForm`.
    url: (raw as { originalUrl?: string }).originalUrl ?? raw.url ?? '-',
    headers: raw.headers,
    rawHeaders: raw.rawHeaders,
    remoteAddress: clientAddress(raw, trustProxyHops),
  };
}

/**
 * The caller's address (D15): each trusted proxy has appended the address it saw, so with n hops it is the
 * n-th entry of `X-Forwarded-For` from the right. Anything further left is the caller's own invention.
 */
export function clientAddress({ socket, headers }: IncomingMessage, trustProxyHops: number): string {
  const peer = plainAddress(socket.remoteAddress ?? '');
  const forwarded = headers['x-forwarded-for'];
  if (trustProxyHops === 0 || forwarded === undefined) return peer;
  const seen = (Array.isArray(forwarded) ? forwarded.join(',') : forwarded).split(',');
  // With fewer entries than hops the call came around a proxy; the leftmost is the best known.
  const address = seen[Math.max(0, seen.length - trustProxyHops)]?.trim() ?? '';
  return isIP(address) ? plainAddress(address) : peer;
}

/** An IPv4 address as such, also where the server listens on IPv6: `::ffff:192.0.2.1` is in no IPv4 CIDR. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

/** The path of a request target, without query and fragment. */
export function pathOf(url: string): string {
  for (let i = 0; i < url.length; i++) {
    const char = url.charCodeAt(i);
    if (char === 63 /* ? */ || char === 35 /* # */) return url.slice(0, i);
  }
  return url;
}

/**
 * The target to route. A proxy may send the absolute form, `GET http://host/v1/orders`, of which the path
 * counts. Everything else that does not begin with a slash (`*`, `*v1/orders`, `ftp://host/x`) becomes a
 * path that no route has: the router would serve `*v1/orders` as `/v1/orders`, and Nest answers such targets
 * in a hook of its own that runs before ours, so before the gate.
 */
export function toOriginForm(target: string): string {
  if (target.charCodeAt(0) === 47 /* / */) return target;
  const scheme = /^https?:\/\/[^/?#]*/i.exec(target);
  if (!scheme) return `/${target}`;
  const rest = target.slice(scheme[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
