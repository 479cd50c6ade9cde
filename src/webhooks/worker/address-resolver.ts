import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';

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
