import { describe, expect, it } from 'vitest';
import { isPublicAddress, MAX_URL_LENGTH, TargetPolicy } from '../../src/webhooks/target-policy.js';

const strict = new TargetPolicy({ webhooks: { allowPrivateTargets: false } });
const development = new TargetPolicy({ webhooks: { allowPrivateTargets: true } });

/** Separated by spaces, one kind per line. */
const words = (text: string): string[] => text.trim().split(/\s+/);

const HOSTILE_ADDRESSES = [
  // this host, loopback
  ...words('0.0.0.0 0.1.2.3 127.0.0.1 127.1.2.3 127.255.255.255 :: ::1'),
  // private, CGNAT, link-local, metadata
  ...words('10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 100.64.0.1'),
  ...words('100.127.255.255 169.254.0.1 169.254.169.254 fe80::1 fe80::1%eth0 febf::1 fc00::1 fd00:ec2::254'),
  ...words('fdff::1 fec0::1'),
  // mapped, compatible, translated, NAT64
  ...words('::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1'),
  ...words('64:ff9b::8.8.8.8 64:ff9b:1::7f00:1'),
  // 6to4, Teredo, ORCHID, benchmarking
  ...words('2002:7f00:1:: 2002:808:808::1 2001::1 2001:0:7f00:1:: 2001:10::1 2001:20::1 2001:2::1'),
  // documentation, benchmarking, protocol assignments, relay anycast
  ...words('192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 192.0.0.1 192.0.0.170 192.88.99.1'),
  ...words('2001:db8::1 3fff::1 100::1 5f00::1'),
  // multicast, reserved, broadcast
  ...words('224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 ff02::1 ff0e::1'),
  // not addresses at all
  ...words('localhost 127.1 0x7f.0.0.1 8.8.8.8/32 [::1] 1.2.3'),
  ...['', ' 8.8.8.8'],
];

const PUBLIC_ADDRESSES = [
  ...words('8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1'),
  ...words('169.253.0.1 192.167.0.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2a00:1450:4001::1'),
  ...words('2400:cb00::1 2001:4860:4860::8888 2003::1 3ffe::1'),
];

describe('the policy for webhook target addresses', () => {
  it.each(HOSTILE_ADDRESSES)('refuses %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
    expect(strict.refusesAddress(address)).toBe(true);
  });

  it.each(PUBLIC_ADDRESSES)('allows %s', (address) => {
    expect(strict.refusesAddress(address)).toBe(false);
  });

  it('allows everything in development', () => {
    for (const address of HOSTILE_ADDRESSES) expect(development.refusesAddress(address)).toBe(false);
  });
});

const coded = (code: string, urls: string): [string, string][] => words(urls).map((url) => [url, code]);

const REFUSED_URLS: readonly (readonly [string, string])[] = [
  ...coded('https_required', 'http://partner.example/hook'),
  ...coded(
    'invalid_url',
    'ftp://partner.example/hook file:///etc/passwd //partner.example/hook partner.example',
  ),
  ...coded('invalid_url', 'https:// https:partner.example https:///partner.example'),
  ...coded('invalid_url', 'https://partner.example:99999/ https://[::1/'),
  ...coded('user_info', 'https://user@partner.example/ https://user:pass@partner.example/'),
  ...coded('user_info', 'https://@partner.example/ https://:@partner.example/'),
  ...coded('fragment', 'https://partner.example/#frag https://partner.example/#'),
  ...coded('ip_literal', 'https://127.0.0.1/ https://8.8.8.8/ https://127.0.0.1./ https://127.1/'),
  ...coded('ip_literal', 'https://2130706433/ https://0x7f.1/ https://0177.0.0.1/ https://①②⑦.0.0.1/'),
  ...coded('ip_literal', 'https://%31%32%37.0.0.1/ https://[::1]/ https://[::ffff:7f00:1]/'),
  ...coded('ip_literal', 'https://[64:ff9b::7f00:1]/ https://[2606:4700::1111]:8443/'),
  ...coded(
    'local_name',
    'https://localhost/ https://LOCALHOST:8443/ https://localhost./ https://a.localhost/',
  ),
  ...coded('local_name', 'https://printer.local/ https://printer.LOCAL./ https://metadata.google.internal/'),
  ...coded('local_name', 'https://%6cocalhost/ https://./'),
  ['', 'invalid_url'],
  ['https:\\\\partner.example', 'invalid_url'],
  ['https://partner.example\\@127.0.0.1/', 'invalid_url'],
  [' https://partner.example', 'invalid_url'],
  ['https://partner.example/a b', 'invalid_url'],
  ['https://partner.example/\n', 'invalid_url'],
  ['https://part\tner.example/', 'invalid_url'],
  ['https://exa mple.com/', 'invalid_url'],
  [`https://partner.example/${'a'.repeat(MAX_URL_LENGTH)}`, 'too_long'],
];

describe('URLs at registration', () => {
  it.each(REFUSED_URLS)('refuses %s as %s', (url, code) => {
    expect(strict.refuseUrl(url)?.code).toBe(code);
  });

  it.each([
    'https://partner.example',
    'https://partner.example/hook?tenant=a%20b&x=@',
    'HTTPS://Partner.Example:8443/hook',
    'https://hooks.localhost.partner.example/',
    'https://internal.example/',
    'https://mañana.example/',
    'https://a/',
  ])('accepts %s', (url) => {
    expect(strict.refuseUrl(url)).toBeNull();
  });

  it('never repeats the URL in its message', () => {
    for (const [url] of REFUSED_URLS) {
      if (url.length > 10) expect(strict.refuseUrl(url)?.message).not.toContain(url);
    }
  });

  it('allows http, IP addresses and local names in development, and nothing else', () => {
    for (const url of [
      'http://127.0.0.1:8080/hook',
      'https://[::1]/',
      'http://localhost/',
      'http://a.internal/',
    ]) {
      expect(development.refuseUrl(url)).toBeNull();
    }
    for (const url of ['ftp://a.example/', 'http://u:p@localhost/', 'http://localhost/#x', 'nonsense']) {
      expect(development.refuseUrl(url)).not.toBeNull();
    }
  });
});
