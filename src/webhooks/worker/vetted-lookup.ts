import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import type { TargetPolicy } from '../target-policy.js';

/** All addresses of a host name; rejects with an error that has a DNS `code`. */
export type ResolveAddresses = (hostname: string) => Promise<readonly LookupAddress[]>;

const QUERY_TIMEOUT_MS = 4_000;
const TRIES = 2;

/**
 * Asks the name servers directly. `dns.lookup` would run on libuv's four threads: a few endpoints whose name servers
 * hang would hold up every other endpoint (D34).
 * @param servers `address:port`; the operating system's when left out
 */
export function nameServerResolver(servers?: readonly string[]): ResolveAddresses {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: TRIES });
  if (servers) resolver.setServers(servers);
  return async (hostname) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const found = [...addresses(v4, 4), ...addresses(v6, 6)];
    if (found.length > 0) return found;
    throw v4.status === 'rejected' ? v4.reason : Object.assign(new Error('no address'), { code: 'ENODATA' });
  };
}

/** As the operating system resolves, `/etc/hosts` and `localhost` included: for development (D35). */
export function systemResolver(): ResolveAddresses {
  return (hostname) => lookup(hostname, { all: true });
}

function addresses(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : [];
}

/** An address that policy refuses is among the answers (D35). The message holds no address. */
export class TargetRefused extends Error {
  override readonly name = 'TargetRefused';
}

/** The name could not be resolved; `code` is the resolver's. */
export class NameNotResolved extends Error {
  override readonly name = 'NameNotResolved';
  constructor(readonly code: string) {
    super('name not resolved');
  }
}

/**
 * A `lookup` for sockets that vets every answer and pins the connection to the vetted ones: nobody resolves the name
 * a second time (D35). It is not called for literals, which the policy refuses in the URL, or for a socket that is
 * reused, which goes where it was vetted to go.
 */
export function vettedLookup(policy: TargetPolicy, resolve: ResolveAddresses): LookupFunction {
  return (hostname, options, callback) => {
    vet(policy, resolve, hostname).then(
      (addresses) => {
        // Node asks for all of them when it may try families in turn, else for one.
        // Not at once: a resolver that knows the answer already must not be faster than the listeners of the socket.
        if (options.all) process.nextTick(callback, null, addresses);
        else process.nextTick(callback, null, addresses[0]!.address, addresses[0]!.family);
      },
      (error: Error) => process.nextTick(callback, error, []),
    );
  };
}

async function vet(
  policy: TargetPolicy,
  resolve: ResolveAddresses,
  hostname: string,
): Promise<LookupAddress[]> {
  const addresses = await resolve(hostname).catch((error: unknown) => {
    const code = (error as { code?: unknown } | null)?.code;
    throw new NameNotResolved(typeof code === 'string' ? code : 'UNKNOWN');
  });
  if (addresses.length === 0) throw new NameNotResolved('ENODATA');
  if (addresses.some(({ address }) => policy.refusesAddress(address))) throw new TargetRefused();
  return [...addresses];
}
