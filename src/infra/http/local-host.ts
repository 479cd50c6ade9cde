import { NetworkList } from '../network/ip-address.js';

const LOOPBACK = new NetworkList(['127.0.0.0/8', '::1']);
/** A name or address, bracketed if it is IPv6, with an optional port and no other URL parts. */
const HOST = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::\d{1,5})?$/i;

/** Whether a listener at this address is reachable only from its own machine. */
export function isLoopback(address: string): boolean {
  return address === 'localhost' || LOOPBACK.includes(address);
}

/**
 * Whether a `Host` header names this machine: `localhost`, a subdomain of it, or a loopback address. A page whose name
 * was rebound to 127.0.0.1 sends its own name, and must not be able to read the response.
 */
export function namesLocalHost(host: string): boolean {
  const [, ipv6, name = ''] = HOST.exec(host) ?? [];
  if (ipv6 !== undefined) return LOOPBACK.includes(ipv6);
  const bare = name.toLowerCase().replace(/\.$/, '');
  return bare === 'localhost' || bare.endsWith('.localhost') || LOOPBACK.includes(bare);
}

/** Message to a refused caller. */
export const LOCAL_ONLY =
  'This path accepts only calls from this machine. Call it as localhost or 127.0.0.1, or make your proxy send that Host header.';
