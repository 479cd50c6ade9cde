import { describe, expect, it } from 'vitest';
import { nameServerResolver, RESOLVER_UNAVAILABLE } from '../../../src/infra/network/resolve-addresses.js';
import { eventually } from '../../harness/index.js';
import { NameServer } from '../../webhooks/sending/name-server.js';

const A = '192.0.2.1';
const AAAA = '2001:db8::1';
const V4 = { address: A, family: 4 };
const V6 = { address: AAAA, family: 6 };

/** A loopback port without a listener. */
const NOBODY = '127.0.0.1:9';

describe('resolving with a name server that ignores one address family', () => {
  it.each([
    ['A', { a: [A], aaaa: [AAAA], silent: ['AAAA'] }, [V4]],
    ['AAAA', { a: [A], aaaa: [AAAA], silent: ['A'] }, [V6]],
  ] as const)('returns the %s addresses', async (_family, records, expected) => {
    const server = await NameServer.start({ 'half.test': records });
    const resolve = nameServerResolver(() => [server.address]);
    const startedAt = performance.now();
    expect(await resolve('half.test')).toEqual(expected);
    // The query for the other family takes at least eight seconds.
    expect(performance.now() - startedAt).toBeLessThan(7_000);
  });

  it('waits for A addresses that come much later than AAAA', async () => {
    const server = await NameServer.start({ 'late.test': { a: [A], aaaa: [AAAA], delayOfA: 300 } });
    expect(await nameServerResolver(() => [server.address])('late.test')).toEqual([V4, V6]);
  });

  it('returns both families when both respond', async () => {
    const server = await NameServer.start({ 'both.test': { a: [A], aaaa: [AAAA] } });
    expect(await nameServerResolver(() => [server.address])('both.test')).toEqual([V4, V6]);
  });
});

describe('resolving while the list of name servers changes', () => {
  it('queries the new ones when the old ones are dead', async () => {
    const server = await NameServer.start({ 'moved.test': { a: [A] } });
    let current = NOBODY;
    const resolve = nameServerResolver(() => [current]);
    await expect(resolve('moved.test')).rejects.toMatchObject({ code: RESOLVER_UNAVAILABLE });
    current = server.address;
    // A failed lookup rereads the list at most once a second.
    const found = await eventually('the new ones are asked', () => resolve('moved.test').catch(() => null));
    expect(found).toEqual([V4]);
  });

  it('queries the new servers when the old servers do not know the name', async () => {
    const old = await NameServer.start({});
    const server = await NameServer.start({ 'moved.test': { a: [A] } });
    let current = old.address;
    const resolve = nameServerResolver(() => [current]);
    await expect(resolve('moved.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    current = server.address;
    const found = await eventually('the new ones are asked', () => resolve('moved.test').catch(() => null));
    expect(found).toEqual([V4]);
  });
});

describe('a failed lookup', () => {
  it('is our fault when our name servers are unreachable', async () => {
    await expect(nameServerResolver(() => [NOBODY])('any.test')).rejects.toMatchObject({
      code: RESOLVER_UNAVAILABLE,
    });
  });

  it('is our fault when our name server fails for every name', async () => {
    const server = await NameServer.start({ 'any.test': { fails: true }, '': { fails: true } });
    const resolve = nameServerResolver(() => [server.address]);
    await expect(resolve('any.test')).rejects.toMatchObject({ code: RESOLVER_UNAVAILABLE });
  });

  it("is the name's fault when our name server resolves other names", async () => {
    const server = await NameServer.start({ 'broken.test': { fails: true } });
    const resolve = nameServerResolver(() => [server.address]);
    await expect(resolve('broken.test')).rejects.toMatchObject({ code: 'ESERVFAIL' });
    await expect(resolve('no-such-name.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });
});
