import { describe, expect, it } from 'vitest';
import {
  callerNetwork,
  NetworkList,
  parseAddress,
  parseForwardedAddress,
  parseNetwork,
} from '../../../src/infra/network/ip-address.js';

describe('allowed networks', () => {
  it.each([
    ['203.0.113.0/24', '203.0.113.0/24'],
    ['203.0.113.7', '203.0.113.7/32'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['255.255.255.255/32', '255.255.255.255/32'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['::1', '::1/128'],
    ['::/0', '::/0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6/128'],
    ['2001:db8::8000/113', '2001:db8::8000/113'],
    ['64:ff9b::192.0.2.0/120', '64:ff9b::192.0.2.0/120'],
  ])('accepts %s', (text, network) => {
    expect(parseNetwork(text)).toBe(network);
  });

  it.each([
    ['', 'nothing'],
    ['example.com', 'a name'],
    ['10.0.0', 'three bytes'],
    ['010.0.0.1', 'octal'],
    ['256.0.0.1', 'a byte too large'],
    ['10.0.0.0/33', 'a length too large'],
    ['10.0.0.0/', 'no length'],
    ['10.0.0.0/08', 'a padded length'],
    ['10.0.0.0/-1', 'a negative length'],
    ['10.0.0.0/8/8', 'two lengths'],
    [' 10.0.0.1', 'a space'],
    ['10.0.0.1/255.0.0.0', 'a mask'],
    ['10.1.2.3/8', 'host bits'],
    ['2001:db8::1/64', 'host bits in IPv6'],
    ['2001:db8::8000/112', 'one host bit in IPv6'],
    ['::/129', 'a length too large for IPv6'],
    ['fe80::1%eth0', 'a zone'],
    ['::ffff:10.0.0.1', 'IPv4 written as IPv6, which no call ever comes from'],
    ['::ffff:0:0/96', 'the network of those'],
    ['1::2::3', 'two gaps'],
  ])('refuses %j (%s)', (text) => {
    expect(parseNetwork(text)).toBeNull();
  });
});

describe('elements of X-Forwarded-For', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    [' 203.0.113.7\t', '203.0.113.7'],
    ['203.0.113.7:5678', '203.0.113.7'],
    ['"203.0.113.7:5678"', '203.0.113.7'],
    ['2001:DB8::7', '2001:db8::7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['"[2001:db8::7]:443"', '2001:db8::7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:80', '203.0.113.7'],
    ['::ffff:203.0.113.7:5678', '203.0.113.7'],
    ['"::FFFF:203.0.113.7:5678"', '203.0.113.7'],
    ['64:ff9b::203.0.113.7:80', '64:ff9b::cb00:7107'],
    ['"2001:db8::7"', '2001:db8::7'],
    ['203.0.113.7:', '203.0.113.7'],
    ['[2001:db8::7]:', '2001:db8::7'],
    ['::ffff:203.0.113.7:', '203.0.113.7'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]:80', 'fe80::1'],
  ])('parses %j as %s', (element, address) => {
    expect(parseForwardedAddress(element)).toBe(address);
  });

  it.each([
    '',
    ' ',
    'unknown',
    '_hidden',
    'example.com',
    'example.com:80',
    'for=203.0.113.7',
    '203.0.113.7:http',
    '203.0.113.7:567890',
    '203.0.113.7:80:80',
    '203.0.113.7 198.51.100.1',
    '[203.0.113.7]',
    '[203.0.113.7]:80',
    '[2001:db8::7',
    '2001:db8::7]:443',
    '[[2001:db8::7]]',
    '[2001:db8::7]443',
    '"203.0.113.7',
    '203.0.113.7"',
    '""203.0.113.7""',
    '010.0.0.1',
    '0xCB007107',
    '1:2:3:4:5:6:7:8:443',
    '2001:db8::7:',
    '::ffff:203.0.113.7:80:80',
    '::ffff:203.0.113.7::',
    '203.0.113.7::',
    ':203.0.113.7:80',
    ':',
    '[]:',
  ])('refuses %j', (element) => {
    expect(parseForwardedAddress(element)).toBeNull();
  });
});

describe('addresses', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:7f00:1', '127.0.0.1'],
    ['::FFFF:7F00:1', '127.0.0.1'],
    ['0:0:0:0:0:ffff:127.0.0.1', '127.0.0.1'],
    ['2001:0DB8:0:0::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::', '::'],
  ])('parses %s as %s', (text, address) => {
    expect(parseAddress(text)).toBe(address);
  });

  it.each([
    '',
    'example.com',
    '10.0.0',
    '010.0.0.1',
    '1.2.3.4%eth0',
    '[::1]',
    '::1:',
    ' 10.0.0.1',
    '10.0.0.1:80',
    '%',
  ])('refuses %j', (text) => {
    expect(parseAddress(text)).toBeNull();
  });
});

describe('a list of networks', () => {
  const list = new NetworkList(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', '::1']);

  it.each(['10.255.0.1', '::ffff:10.1.2.3', '::ffff:a01:203', '192.0.2.7', '2001:db8:ffff::1', '::1'])(
    'includes %s',
    (address) => {
      expect(list.includes(address)).toBe(true);
    },
  );

  it.each(['11.0.0.1', '192.0.2.8', '2001:db9::1', '::2', '', 'ten', '0.0.0.1'])(
    'does not include %j',
    (address) => {
      expect(list.includes(address)).toBe(false);
    },
  );

  it('does not accept host bits', () => {
    expect(() => new NetworkList(['10.1.2.3/8'])).toThrow('not a network');
  });
});

describe('the address range of one caller', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['2001:0db8:0000:0001::1', '2001:db8:0:1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['', ''],
  ])('reduces %j to %j', (address, network) => {
    expect(callerNetwork(address)).toBe(network);
  });
});
