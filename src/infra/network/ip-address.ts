import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The address that `text` names, in one spelling; null for anything else. IPv4 written as IPv6 (`::ffff:7f00:1`)
 * becomes IPv4, or an IPv4 network would never match on a dual-stack socket. A zone (`fe80::1%eth0`) is cut: it
 * names an interface of this machine, and PostgreSQL's `inet` takes none (D15).
 */
export function parseAddress(text: string): string | null {
  // First and without a parser: almost every call comes from such an address.
  if (isIPv4(text)) return text;
  const zone = text.indexOf('%');
  const bare = zone === -1 ? text : text.slice(0, zone);
  if (!isIPv6(bare)) return null;
  const address = ipaddr.IPv6.parse(bare);
  return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toString();
}

/** An address in brackets, or one that ends in IPv4; then the port that some proxies append, which may be empty. */
const WITH_PORT = /^(?:\[([^[\]]*)\]|((?:[\da-f:]*:)?(?:\d{1,3}\.){3}\d{1,3}))(?::\d{0,5})?$/i;

/**
 * The address that one element of `X-Forwarded-For` names, in the spelling of `parseAddress`. Proxies write
 * `203.0.113.7:5678`, `::ffff:203.0.113.7:5678`, `[2001:db8::7]:443`, a colon without a port, and each in quotes. Null for
 * everything else (`unknown`, a name, nothing).
 */
export function parseForwardedAddress(element: string): string | null {
  const text = element.trim();
  const known = parseAddress(text);
  if (known !== null) return known;
  const unquoted = text.replace(/^"(.*)"$/, '$1').trim();
  const [, inBrackets, bare] = WITH_PORT.exec(unquoted) ?? [];
  // Brackets are for IPv6 only.
  if (inBrackets !== undefined) return inBrackets.includes(':') ? parseAddress(inBrackets) : null;
  return parseAddress(bare ?? unquoted);
}

/**
 * The network that `text` names, as `address/length`, or null: IPv4 or IPv6, a bare address being a network of one.
 * Bits beyond the length are refused, not cut: `10.1.2.3/8` is more likely a slip than the wish to allow 10.0.0.0/8.
 * IPv4 written as IPv6 is refused, too: `parseAddress` makes IPv4 of such callers, so it would match nobody.
 */
export function parseNetwork(text: string): string | null {
  const [address = '', length, ...rest] = text.split('/');
  if (rest.length > 0 || address.includes('%')) return null;
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return null;
  if (!isIPv4(address) && !isIPv6(address)) return null;
  const parsed = ipaddr.parse(address);
  const width = parsed.kind() === 'ipv4' ? 32 : 128;
  const prefix = length === undefined ? width : Number(length);
  if (prefix > width || hasHostBits(parsed, prefix)) return null;
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) return null;
  return `${address.toLowerCase()}/${prefix}`;
}

function hasHostBits(address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number): boolean {
  const network = address.toByteArray();
  return network.some((byte, index) => {
    const networkBits = Math.min(8, Math.max(0, prefix - 8 * index));
    return (byte & (0xff >> networkBits)) !== 0;
  });
}

/** Networks that an address may be in. Build it once: every network is parsed here. */
export class NetworkList {
  private readonly networks: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];

  /** @throws Error for text that `parseNetwork` does not take */
  constructor(networks: readonly string[]) {
    this.networks = networks.map((text) => {
      const network = parseNetwork(text);
      if (network === null) throw new Error('not a network in CIDR notation');
      return ipaddr.parseCIDR(network);
    });
  }

  /** False for what is no address, too. */
  includes(address: string): boolean {
    const text = parseAddress(address);
    if (text === null) return false;
    const parsed = ipaddr.parse(text);
    return this.networks.some(
      ([network, prefix]) => network.kind() === parsed.kind() && parsed.match(network, prefix),
    );
  }
}

/**
 * What one caller has to itself: an IPv4 address, or an IPv6 /64, of which it can use every address. Text that is
 * no address stands for itself.
 */
export function callerNetwork(text: string): string {
  const address = parseAddress(text);
  if (address === null) return text;
  if (!address.includes(':')) return address;
  const groups = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return groups.map((group) => group.toString(16)).join(':');
}
