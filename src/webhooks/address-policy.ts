import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** IANA special-purpose IPv4 ranges that are not public unicast, and 6to4's relay anycast (D35). */
const REFUSED_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

/** Parts of 2000::/3 that are not public unicast: Teredo, ORCHID and their like, documentation, 6to4 (D35). */
const REFUSED_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const refusedIpv4 = new BlockList();
for (const [net, prefix] of REFUSED_IPV4) refusedIpv4.addSubnet(net, prefix, 'ipv4');

const globalIpv6 = new BlockList();
globalIpv6.addSubnet('2000::', 3, 'ipv6');
const refusedIpv6 = new BlockList();
for (const [net, prefix] of REFUSED_IPV6) refusedIpv6.addSubnet(net, prefix, 'ipv6');

/**
 * Whether a webhook may be sent to `address`: public unicast only (D35). IPv6 is closed by default: outside 2000::/3
 * lie loopback, link-local, unique local, mapped and NAT64 addresses, and whatever is assigned tomorrow.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !refusedIpv4.check(address, 'ipv4');
  // A zone (`fe80::1%eth0`) names a local link; public addresses have none.
  if (!isIPv6(address) || address.includes('%')) return false;
  return globalIpv6.check(address, 'ipv6') && !refusedIpv6.check(address, 'ipv6');
}
