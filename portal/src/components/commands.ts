import type { Mode } from '../api/types.ts';

/** The address of this deployment's API; a placeholder where nobody has said it. */
type ApiUrl = string | null | undefined;

const SIGNED_IN = '-H "Authorization: Bearer $ESIM_API_KEY"';
const base = (apiUrl: ApiUrl): string => apiUrl ?? 'https://$API_HOST';

/** The call that reads something of the API. Quoted: a shell would take `?` and `&` for its own. */
export function readCommand(apiUrl: ApiUrl, path: string): string {
  return `curl "${base(apiUrl)}/v1/${path}" ${SIGNED_IN}`;
}

/** The call that places an order, of `packageId` where one is known that the partner buys. */
export function orderCommand(apiUrl: ApiUrl, mode: Mode, packageId?: string): string {
  // The catalogue of Sandbox is the same for everybody; what Live sells, it says itself.
  const any = mode === 'sandbox' ? 'pkg_fr_1gb_7d' : '<a package of GET /v1/catalog>';
  return [
    `curl ${base(apiUrl)}/v1/orders \\`,
    `  ${SIGNED_IN} -H "Idempotency-Key: $(date +%s)-$RANDOM" \\`,
    `  -H "Content-Type: application/json" -d '{"package_id":"${packageId ?? any}"}'`,
  ].join('\n');
}
