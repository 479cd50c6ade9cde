import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import { endsWithin } from '../../common/time-limit.js';

/** All addresses of a host name; rejects with an error that has a DNS `code`. */
export type ResolveAddresses = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * How long the addresses of one family wait for those of the other. RFC 8305 section 3 recommends 50 ms for AAAA. A
 * host without IPv6 cannot use AAAA alone, so A gets as long as a slow name server takes.
 */
const WAIT_FOR_MS: Readonly<Record<4 | 6, number>> = { 4: 2_000, 6: 50 };
const QUERY_TIMEOUT_MS = 4_000;
const TRIES = 2;
const PROBE_TIMEOUT_MS = 2_000;
/** A resolver reads `/etc/resolv.conf` once, when it is created. */
const RESOLVER_MAX_AGE_MS = 60_000;
/** Names that fail must not cost one read of `/etc/resolv.conf` each. */
const RESOLVER_MIN_AGE_MS = 1_000;

/** Our own name servers did not respond, so nothing is known about the name. */
export const RESOLVER_UNAVAILABLE = 'RESOLVER_UNAVAILABLE';

const ABOUT_THE_NAME = new Set(['ENOTFOUND', 'ENODATA', 'ENONAME', 'EBADNAME']);
/** The server rejected the query, so it is up. */
const REJECTED = new Set(['EREFUSED', 'ENOTIMP', 'EFORMERR']);

/**
 * Queries the name servers of the operating system directly. `dns.lookup` would run on libuv's four threads, where a
 * few hosts whose name servers hang would delay every other host (D34).
 * @param servers `address:port` of each server, called for every new resolver. Without it, `/etc/resolv.conf` decides
 */
export function nameServerResolver(servers?: () => readonly string[]): ResolveAddresses {
  const nameServers = new NameServers(servers);
  return (hostname) => nameServers.resolve(hostname);
}

/** Resolves as the operating system does, including `/etc/hosts` and `localhost`. */
export function systemResolver(): ResolveAddresses {
  // A query that hangs holds a thread of libuv for seconds, so each host has at most one per family.
  const underWay = new Map<string, Promise<LookupAddress[]>>();
  return (hostname) =>
    bothFamilies((family) => {
      const key = `${family} ${hostname}`;
      const query =
        underWay.get(key) ?? lookup(hostname, { family, all: true }).finally(() => underWay.delete(key));
      underWay.set(key, query);
      return query;
    });
}

/** The name servers of `/etc/resolv.conf`, which may change while the process runs. */
class NameServers {
  private resolver: Resolver;
  private createdAt = 0;
  private answeredAt = -Infinity;
  private probe: Promise<boolean> | null = null;

  constructor(private readonly servers?: () => readonly string[]) {
    this.resolver = this.renew();
  }

  /** @throws Error with a DNS `code`, or `RESOLVER_UNAVAILABLE` if our name servers do not respond */
  async resolve(hostname: string): Promise<readonly LookupAddress[]> {
    const startedAt = performance.now();
    if (startedAt - this.createdAt > RESOLVER_MAX_AGE_MS) this.renew();
    const used = this.resolver;
    try {
      return await this.query(used, hostname);
    } catch (error) {
      if (!this.hasChangedSince(used)) throw await this.blame(error, startedAt);
    }
    try {
      return await this.query(this.resolver, hostname);
    } catch (error) {
      throw await this.blame(error, startedAt);
    }
  }

  private renew(): Resolver {
    this.createdAt = performance.now();
    return (this.resolver = this.createResolver(QUERY_TIMEOUT_MS, TRIES));
  }

  private createResolver(timeout: number, tries: number): Resolver {
    const resolver = new Resolver({ timeout, tries });
    if (this.servers) resolver.setServers(this.servers());
    return resolver;
  }

  private hasChangedSince(used: Resolver): boolean {
    if (performance.now() - this.createdAt > RESOLVER_MIN_AGE_MS) this.renew();
    return String(this.resolver.getServers()) !== String(used.getServers());
  }

  private async query(resolver: Resolver, hostname: string): Promise<readonly LookupAddress[]> {
    try {
      const found = await bothFamilies(async (family) => {
        const addresses = await (family === 4 ? resolver.resolve4(hostname) : resolver.resolve6(hostname));
        return addresses.map((address) => ({ address, family }));
      });
      this.answeredAt = performance.now();
      return found;
    } catch (error) {
      if (ABOUT_THE_NAME.has(codeOf(error))) this.answeredAt = performance.now();
      throw error;
    }
  }

  /**
   * The error to report. If no other name was resolved in the meantime, probes whether our own name servers are at
   * fault.
   */
  private async blame(error: unknown, startedAt: number): Promise<unknown> {
    if (ABOUT_THE_NAME.has(codeOf(error)) || this.answeredAt >= startedAt) return error;
    this.probe ??= this.answersAboutTheRoot().finally(() => (this.probe = null));
    if (await this.probe) return error;
    return Object.assign(new Error('our name servers do not respond'), { code: RESOLVER_UNAVAILABLE });
  }

  /** Every resolver that works knows the root zone. */
  private async answersAboutTheRoot(): Promise<boolean> {
    try {
      await this.createResolver(PROBE_TIMEOUT_MS, 1).resolveNs('.');
      return true;
    } catch (error) {
      return ABOUT_THE_NAME.has(codeOf(error)) || REJECTED.has(codeOf(error));
    }
  }
}

/**
 * Queries both families at once. Once IPv4 has addresses, IPv6 gets 50 ms more, because many name servers never respond
 * to AAAA. Once IPv6 has addresses, IPv4 gets 2 s more. IPv4 addresses come first.
 */
async function bothFamilies(
  query: (family: 4 | 6) => Promise<readonly LookupAddress[]>,
): Promise<readonly LookupAddress[]> {
  const answers: Record<4 | 6, readonly LookupAddress[]> = { 4: [], 6: [] };
  const queries = ([4, 6] as const).map(async (family) => {
    answers[family] = await query(family);
    if (answers[family].length === 0) throw Object.assign(new Error('no address'), { code: 'ENODATA' });
    return family;
  });
  const all = Promise.allSettled(queries);
  const first = await Promise.any(queries).catch(() => null);
  if (first !== null) {
    await endsWithin(all, WAIT_FOR_MS[first === 4 ? 6 : 4]);
    return [...answers[4], ...answers[6]];
  }
  const errors = (await all).flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  // "No A record" says less than why the AAAA query failed.
  throw errors.find((error) => codeOf(error) !== 'ENODATA') ?? errors[0];
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'UNKNOWN';
}
