import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/api-keys/allowed-cidr.js';

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
  ])('takes %s', (text, network) => {
    expect(parseCidr(text)).toBe(network);
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
    expect(parseCidr(text)).toBeNull();
  });
});
