import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import type { ResolveAddresses } from '../../infra/network/resolve-addresses.js';
import type { TargetPolicy } from '../target-policy.js';

/** The lookup returned an address that policy refuses (D35). The message contains no address. */
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
 * The vetted addresses of `hostname`. The caller connects to these and no others: the name is not resolved a second
 * time (D35). A literal is returned as it is; the check of the URL refuses it unless private targets are allowed.
 * @throws NameNotResolved; TargetRefused if one of the addresses is refused
 */
export async function vettedAddresses(
  policy: TargetPolicy,
  resolve: ResolveAddresses,
  hostname: string,
): Promise<readonly LookupAddress[]> {
  const family = isIP(hostname);
  const addresses = family === 0 ? await resolved(resolve, hostname) : [{ address: hostname, family }];
  if (addresses.some(({ address }) => policy.refusesAddress(address))) throw new TargetRefused();
  return addresses;
}

async function resolved(resolve: ResolveAddresses, hostname: string): Promise<readonly LookupAddress[]> {
  const addresses = await resolve(hostname).catch((error: unknown) => {
    const code = (error as { code?: unknown } | null)?.code;
    throw new NameNotResolved(typeof code === 'string' ? code : 'UNKNOWN');
  });
  if (addresses.length === 0) throw new NameNotResolved('ENODATA');
  return addresses;
}
