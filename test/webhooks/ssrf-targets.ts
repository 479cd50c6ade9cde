import type { Zone } from './sending/name-server.js';

/** Separated by spaces. */
const words = (text: string): string[] => text.split(' ');

/**
 * URLs that must be refused before any DNS query (D35). `PORT` is the canary's, which those that mean loopback would
 * reach.
 */
export const HOSTILE_URLS: readonly string[] = [
  // IPv4 in every notation that a URL parser accepts
  ...words('https://127.0.0.1:PORT/ https://127.0.0.1.:PORT/ https://127.0.0.1..:PORT/'),
  ...words('https://127.1:PORT/ https://127.0.1:PORT/ https://2130706433:PORT/ https://2130706433.:PORT/'),
  ...words('https://017700000001:PORT/ https://0177.0.0.1:PORT/ https://0177.0.0.01:PORT/'),
  ...words('https://0x7f000001:PORT/ https://0x7f.1:PORT/ https://0X7F.0.0.0x1:PORT/'),
  ...words('https://0x7f.0.01:PORT/ https://0177.0x0.1:PORT/ https://①②⑦.⓪.⓪.①:PORT/'),
  ...words('https://127。0。0。1:PORT/ https://１２７.0.0.1:PORT/ https://%31%32%37.0.0.1:PORT/'),
  ...words('https://127.0.0.%31:PORT/ https://0x7f%2e1:PORT/ https://0.0.0.0:PORT/ https://0:PORT/'),
  ...words('https://00000000000.0:PORT/ https://127.127.127.127:PORT/ https://8.8.8.8:PORT/'),
  // more than four parts, or too large: neither an address nor a name
  ...words('https://127.0.0.1.1:PORT/ https://256.0.0.1:PORT/ https://4294967296:PORT/'),
  // IPv6: loopback, unspecified, mapped, compatible, NAT64, 6to4, Teredo, unique local, link-local
  ...words('https://[::1]:PORT/ https://[0:0:0:0:0:0:0:1]:PORT/ https://[::]:PORT/'),
  ...words('https://[::ffff:127.0.0.1]:PORT/ https://[::ffff:7f00:1]:PORT/ https://[::127.0.0.1]:PORT/'),
  ...words('https://[64:ff9b::127.0.0.1]:PORT/ https://[64:ff9b:1::a9fe:a9fe]/'),
  ...words('https://[2002:7f00:1::]:PORT/ https://[2001:0:7f00:1::]:PORT/ https://[fc00::1]/'),
  ...words('https://[fd00:ec2::254]/latest/meta-data/ https://[fe80::1]/ https://[fe80::1%25lo]/'),
  ...words('https://[::1%25lo]:PORT/ https://[2606:4700::1111]:PORT/'),
  // metadata services by address and by name
  ...words('https://169.254.169.254/latest/meta-data/ https://169.254.169.254:80/ https://0xa9fea9fe/'),
  ...words('https://2852039166/ https://169.254.170.2/v2/credentials https://100.100.100.200/'),
  ...words('https://192.0.0.192/opc/v2/ https://168.63.129.16/ https://metadata.google.internal/'),
  // private networks, and ports that are not for webhooks
  ...words('https://10.0.0.1:22/ https://172.16.0.1:6379/ https://192.168.0.1:5432/ https://127.0.0.1:0/'),
  ...words('https://127.0.0.1:65536/ https://127.0.0.1:-1/'),
  // names of this host
  ...words('https://localhost:PORT/ https://localhost.:PORT/ https://LocalHost:PORT/'),
  ...words('https://%6c%6f%63alhost:PORT/ https://ｌocalhost:PORT/ https://a.localhost:PORT/'),
  ...words('https://printer.local:PORT/ https://redis.internal.:PORT/'),
  // user information, fragments, and text that a second parser would interpret differently
  ...words('https://public.test@127.0.0.1:PORT/ https://public.test:443@127.0.0.1:PORT/'),
  ...words('https://127.0.0.1:PORT@public.test/ https://127.0.0.1:PORT#@public.test/'),
  'https://127.0.0.1:PORT\\@public.test/',
  'https://public.test\\@127.0.0.1:PORT/',
  ...words('https://public.test%40127.0.0.1:PORT/ https://public.test%00.127.0.0.1:PORT/'),
  ...words('https://127.0.0.1:PORT%2f@public.test/'),
  'https://127.0.0.1\t:PORT/',
  'https://127.0.0.1:PORT/ HTTP/1.1\r\nX: y',
  ...words('https:127.0.0.1:PORT https:///127.0.0.1:PORT/ //127.0.0.1:PORT/'),
  // other schemes
  ...words('http://127.0.0.1:PORT/ http://public.test:PORT/ ftp://127.0.0.1:PORT/'),
  ...words('gopher://127.0.0.1:PORT/ file:///etc/passwd data:text/plain,x'),
];

/** An address that the policy accepts and that is unassigned, so no packet reaches anybody. */
export const UNASSIGNED = '3000::1';

/** Names whose addresses must be refused when connecting. Loopback ones would reach the canary. */
export const HOSTILE_NAMES: Zone = {
  'loopback.test': { a: ['127.0.0.1'] },
  'loopback6.test': { aaaa: ['::1'] },
  'both.test': { a: ['127.0.0.1'], aaaa: ['::1'] },
  'any.test': { a: ['0.0.0.0'] },
  'any6.test': { aaaa: ['::'] },
  'ten.test': { a: ['10.0.0.5'] },
  'cgnat.test': { a: ['100.64.0.1'] },
  'metadata.test': { a: ['169.254.169.254'] },
  'metadata6.test': { aaaa: ['fd00:ec2::254'] },
  'mapped.test': { aaaa: ['::ffff:127.0.0.1'] },
  'compatible.test': { aaaa: ['::127.0.0.1'] },
  'nat64.test': { aaaa: ['64:ff9b::7f00:1'] },
  'nat64-local.test': { aaaa: ['64:ff9b:1::7f00:1'] },
  'sixtofour.test': { aaaa: ['2002:7f00:1::'] },
  'teredo.test': { aaaa: ['2001:0:7f00:1::'] },
  'unique-local.test': { aaaa: ['fd12:3456::1'] },
  'link-local.test': { aaaa: ['fe80::1'] },
  'public-first.test': { a: ['93.184.215.14', '127.0.0.1'] },
  'private-first.test': { a: ['127.0.0.1', '93.184.215.14'] },
  'public-v4-private-v6.test': { a: ['93.184.215.14'], aaaa: ['::1'] },
  'private-v4-public-v6.test': { a: ['127.0.0.1'], aaaa: [UNASSIGNED] },
  'one-in-twenty.test': {
    a: [...Array.from({ length: 19 }, (_, i) => `93.184.215.${i + 1}`), '127.0.0.1'],
  },
  'alias.test': { cname: 'redis.inner.test', a: ['127.0.0.1'] },
  'alias-to-localhost.test': { cname: 'localhost', a: ['127.0.0.1'], aaaa: ['::1'] },
  '127.0.0.1.rebind.test': { a: ['127.0.0.1'] },
  'xn--bcher-kva.test': { a: ['127.0.0.1'] },
};
