import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { TargetPolicy } from '../target-policy.js';
import type { ResolveAddresses } from './address-resolver.js';

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
