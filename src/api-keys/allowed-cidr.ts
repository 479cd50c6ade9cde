import { isIP } from 'node:net';

const BITS = { 4: 32, 6: 128 } as const;
/** `::ffff:0:0/96`. The key check sees such callers as IPv4, so a network of these would never match (D15). */
const MAPPED_IPV4 = 0xffffn;

/**
 * The network that `text` names, as `address/length`, or null: IPv4 or IPv6, a bare address being a network of one.
 * Bits beyond the length are refused, not cut: `10.1.2.3/8` is more likely a slip than the wish to allow 10.0.0.0/8.
 */
export function parseCidr(text: string): string | null {
  const [address = '', length, ...rest] = text.split('/');
  const family = isIP(address);
  // isIP takes zones such as fe80::1%eth0, PostgreSQL does not.
  if (rest.length > 0 || (family !== 4 && family !== 6) || address.includes('%')) return null;
  const width = BITS[family];
  const prefix = length === undefined ? width : toPrefix(length, width);
  const bits = family === 4 ? ipv4Bits(address) : ipv6Bits(address);
  if (prefix === null || (bits & ((1n << BigInt(width - prefix)) - 1n)) !== 0n) return null;
  if (family === 6 && bits >> 32n === MAPPED_IPV4) return null;
  return `${address.toLowerCase()}/${prefix}`;
}

function toPrefix(text: string, width: number): number | null {
  return /^(0|[1-9]\d{0,2})$/.test(text) && Number(text) <= width ? Number(text) : null;
}

function ipv4Bits(address: string): bigint {
  return address.split('.').reduce((bits, byte) => (bits << 8n) | BigInt(byte), 0n);
}

function ipv6Bits(address: string): bigint {
  const [head = '', tail] = withoutDots(address).split('::').map(groups);
  const missing = Array<string>(8 - head.length - (tail?.length ?? 0)).fill('0');
  return [...head, ...missing, ...(tail ?? [])].reduce(
    (bits, group) => (bits << 16n) | BigInt(`0x${group}`),
    0n,
  );
}

function groups(part: string): string[] {
  return part === '' ? [] : part.split(':');
}

/** `::1.2.3.4` as `::102:304`. */
function withoutDots(address: string): string {
  return address.replace(/[\d.]+\.[\d.]+$/, (ipv4) => {
    const bits = ipv4Bits(ipv4);
    return `${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}`;
  });
}
