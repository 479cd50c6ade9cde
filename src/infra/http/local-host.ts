import { NetworkList } from '../network/ip-address.js';

const LOOPBACK = new NetworkList(['127.0.0.0/8', '::1']);
/** A name or an address, in brackets where it is IPv6, and a port; nothing that a URL has besides. */
const HOST = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::\d{1,5})?$/i;

/** Whether a listener at this address is reached from its own machine alone. */
export function isLoopback(address: string): boolean {
  return address === 'localhost' || LOOPBACK.includes(address);
}

/**
 * Whether a `Host` header names this machine: `localhost`, a name below it, or a loopback address. A page whose name was
 * rebound to 127.0.0.1 says its own name, and is all that a browser lets it read.
 */
export function namesLocalHost(host: string): boolean {
  const [, ipv6, name = ''] = HOST.exec(host) ?? [];
  if (ipv6 !== undefined) return LOOPBACK.includes(ipv6);
  const bare = name.toLowerCase().replace(/\.$/, '');
  return bare === 'localhost' || bare.endsWith('.localhost') || LOOPBACK.includes(bare);
}

/** What a refused caller is told. */
export const LOCAL_ONLY =
  'This path is for callers on this machine. Call it by localhost or 127.0.0.1, or let your proxy send that as Host.';
