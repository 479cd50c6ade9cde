import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Normalizes an address; null for other text. IPv4 written as IPv6 (`::ffff:7f00:1`) becomes IPv4, because an IPv4
 * network would otherwise never match on a dual-stack socket. A zone (`fe80::1%eth0`) is removed: it names an interface
 * of this machine, and PostgreSQL's `inet` rejects it (D15).
 */
export function parseAddress(text: string): string | null {
  // Checked first and without a parser, because almost every call comes from such an address.
  if (isIPv4(text)) return text;
  const zone = text.indexOf('%');
  const bare = zone === -1 ? text : text.slice(0, zone);
  if (!isIPv6(bare)) return null;
  const address = ipaddr.IPv6.parse(bare);
  return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toString();
}

/**
 * An address in brackets, or one that ends in IPv4, with the optional port that some proxies append; the port may be
 * empty.
 */
const WITH_PORT = /^(?:\[([^[\]]*)\]|((?:[\da-f:]*:)?(?:\d{1,3}\.){3}\d{1,3}))(?::\d{0,5})?$/i;

/**
 * The address in one element of `X-Forwarded-For`, normalized by `parseAddress`. Proxies write `203.0.113.7:5678`,
 * `::ffff:203.0.113.7:5678`, `[2001:db8::7]:443`, a colon without a port, and each of them in quotes. Null for
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
 * Normalizes a network to `address/length`, or null: IPv4 or IPv6; a bare address is a network of one. Bits beyond the
 * length are refused instead of removed, because `10.1.2.3/8` is more likely a mistake than the wish to allow
 * 10.0.0.0/8. IPv4 written as IPv6 is refused too: `parseAddress` converts such callers to IPv4, so it would never
 * match.
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

/** A set of networks. Build it once, because every network is parsed here. */
export class NetworkList {
  private readonly networks: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];

  /** @throws Error for text that `parseNetwork` refuses */
  constructor(networks: readonly string[]) {
    this.networks = networks.map((text) => {
      const network = parseNetwork(text);
      if (network === null) throw new Error('not a network in CIDR notation');
      return ipaddr.parseCIDR(network);
    });
  }

  /** False also for text that is not an address. */
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
 * The network that one caller controls: an IPv4 address, or an IPv6 /64, of which it can use every address. Other text
 * is returned unchanged.
 */
export function callerNetwork(text: string): string {
  const address = parseAddress(text);
  if (address === null) return text;
  if (!address.includes(':')) return address;
  const groups = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return groups.map((group) => group.toString(16)).join(':');
}
