import { describe, expect, it } from 'vitest';
import { isPublicAddress, MAX_URL_LENGTH, TargetPolicy } from '../../src/webhooks/target-policy.js';

const strict = new TargetPolicy({ webhooks: { allowPrivateTargets: false } });
const development = new TargetPolicy({ webhooks: { allowPrivateTargets: true } });

const HOSTILE_ADDRESSES = [
  // this host, loopback
  '0.0.0.0',
  '0.1.2.3',
  '127.0.0.1',
  '127.1.2.3',
  '127.255.255.255',
  '::',
  '::1',
  // private, CGNAT, link-local, metadata
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '192.168.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '169.254.0.1',
  '169.254.169.254',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fc00::1',
  'fd00:ec2::254',
  'fdff::1',
  'fec0::1',
  // mapped, compatible, translated, NAT64
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:8.8.8.8',
  '::127.0.0.1',
  '::ffff:0:127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b::8.8.8.8',
  '64:ff9b:1::7f00:1',
  // 6to4, Teredo, ORCHID, benchmarking
  '2002:7f00:1::',
  '2002:808:808::1',
  '2001::1',
  '2001:0:7f00:1::',
  '2001:10::1',
  '2001:20::1',
  '2001:2::1',
  // documentation, benchmarking, protocol assignments, relay anycast
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '198.18.0.1',
  '198.19.255.255',
  '192.0.0.1',
  '192.0.0.170',
  '192.88.99.1',
  '2001:db8::1',
  '3fff::1',
  '100::1',
  '5f00::1',
  // multicast, reserved, broadcast
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  'ff02::1',
  'ff0e::1',
  // no addresses at all
  '',
  'localhost',
  '127.1',
  '0x7f.0.0.1',
  '8.8.8.8/32',
  '[::1]',
  '1.2.3',
  ' 8.8.8.8',
];

const PUBLIC_ADDRESSES = [
  '8.8.8.8',
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.1',
  '100.63.255.255',
  '100.128.0.1',
  '172.15.0.1',
  '172.32.0.1',
  '169.253.0.1',
  '192.167.0.1',
  '198.17.0.1',
  '198.20.0.1',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450:4001::1',
  '2400:cb00::1',
  '2001:4860:4860::8888',
  '2003::1',
  '3ffe::1',
];

describe('addresses that webhooks may be sent to', () => {
  it.each(HOSTILE_ADDRESSES)('refuses %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
    expect(strict.refusesAddress(address)).toBe(true);
  });

  it.each(PUBLIC_ADDRESSES)('takes %s', (address) => {
    expect(strict.refusesAddress(address)).toBe(false);
  });

  it('takes everything in development', () => {
    for (const address of HOSTILE_ADDRESSES) expect(development.refusesAddress(address)).toBe(false);
  });
});

const REFUSED_URLS: readonly (readonly [string, string])[] = [
  ['http://partner.example/hook', 'https_required'],
  ['ftp://partner.example/hook', 'invalid_url'],
  ['file:///etc/passwd', 'invalid_url'],
  ['//partner.example/hook', 'invalid_url'],
  ['partner.example', 'invalid_url'],
  ['', 'invalid_url'],
  ['https://', 'invalid_url'],
  ['https:partner.example', 'invalid_url'],
  ['https:///partner.example', 'invalid_url'],
  ['https:\\\\partner.example', 'invalid_url'],
  ['https://partner.example\\@127.0.0.1/', 'invalid_url'],
  [' https://partner.example', 'invalid_url'],
  ['https://partner.example/a b', 'invalid_url'],
  ['https://partner.example/\n', 'invalid_url'],
  ['https://part\tner.example/', 'invalid_url'],
  ['https://partner.example:99999/', 'invalid_url'],
  ['https://exa mple.com/', 'invalid_url'],
  ['https://[::1/', 'invalid_url'],
  ['https://user@partner.example/', 'user_info'],
  ['https://user:pass@partner.example/', 'user_info'],
  ['https://@partner.example/', 'user_info'],
  ['https://:@partner.example/', 'user_info'],
  ['https://partner.example/#frag', 'fragment'],
  ['https://partner.example/#', 'fragment'],
  ['https://127.0.0.1/', 'ip_literal'],
  ['https://8.8.8.8/', 'ip_literal'],
  ['https://127.0.0.1./', 'ip_literal'],
  ['https://127.1/', 'ip_literal'],
  ['https://2130706433/', 'ip_literal'],
  ['https://0x7f.1/', 'ip_literal'],
  ['https://0177.0.0.1/', 'ip_literal'],
  ['https://①②⑦.0.0.1/', 'ip_literal'],
  ['https://%31%32%37.0.0.1/', 'ip_literal'],
  ['https://[::1]/', 'ip_literal'],
  ['https://[::ffff:7f00:1]/', 'ip_literal'],
  ['https://[64:ff9b::7f00:1]/', 'ip_literal'],
  ['https://[2606:4700::1111]:8443/', 'ip_literal'],
  ['https://localhost/', 'local_name'],
  ['https://LOCALHOST:8443/', 'local_name'],
  ['https://localhost./', 'local_name'],
  ['https://a.localhost/', 'local_name'],
  ['https://printer.local/', 'local_name'],
  ['https://printer.LOCAL./', 'local_name'],
  ['https://metadata.google.internal/', 'local_name'],
  ['https://%6cocalhost/', 'local_name'],
  ['https://./', 'local_name'],
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
  ])('takes %s', (url) => {
    expect(strict.refuseUrl(url)).toBeNull();
  });

  it('never repeats the URL in its words', () => {
    for (const [url] of REFUSED_URLS) {
      if (url.length > 10) expect(strict.refuseUrl(url)?.message).not.toContain(url);
    }
  });

  it('lifts https, literals and local names in development, and nothing else', () => {
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
