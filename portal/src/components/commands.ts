import type { Mode } from '../api/types.ts';

/** The address of this deployment's API; a placeholder when it is not configured. */
type ApiUrl = string | null | undefined;

const SIGNED_IN = '-H "Authorization: Bearer $ESIM_API_KEY"';
const base = (apiUrl: ApiUrl): string => apiUrl ?? 'https://$API_HOST';

/** A command that reads from the API. Quoted, because a shell would interpret `?` and `&`. */
export function readCommand(apiUrl: ApiUrl, path: string): string {
  return `curl "${base(apiUrl)}/v1/${path}" ${SIGNED_IN}`;
}

/** A command that places an order, for `packageId` if the partner's usual package is known. */
export function orderCommand(apiUrl: ApiUrl, mode: Mode, packageId?: string): string {
  // All partners share the Sandbox catalog; Live catalogs differ.
  const any = mode === 'sandbox' ? 'pkg_fr_1gb_7d' : '<a package of GET /v1/catalog>';
  return [
    `curl ${base(apiUrl)}/v1/orders \\`,
    `  ${SIGNED_IN} -H "Idempotency-Key: $(date +%s)-$RANDOM" \\`,
    `  -H "Content-Type: application/json" -d '{"package_id":"${packageId ?? any}"}'`,
  ].join('\n');
}
