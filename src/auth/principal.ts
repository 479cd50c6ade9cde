import type { Mode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import type { IdempotencyOwner } from '../infra/idempotency/index.js';

/** Who calls the partner API: a partner in one mode, through one key. */
export class PartnerPrincipal implements IdempotencyOwner, TenantScope {
  /** Keys belong to partner and mode, not to the API key: a rotation in mid-retry must still deduplicate (D17). */
  readonly idempotencyScope: string;

  constructor(
    readonly partnerId: string,
    readonly partnerName: string,
    readonly mode: Mode,
    readonly keyId: string,
  ) {
    this.idempotencyScope = `${partnerId}:${mode}`;
  }
}

/** Who calls the internal admin API: the holder of one of `ADMIN_TOKENS`. */
export class AdminPrincipal implements IdempotencyOwner {
  readonly idempotencyScope: string;

  constructor(
    /** The name before the colon in `ADMIN_TOKENS`. */
    readonly tokenName: string,
    /** The portal user of the optional header `X-Actor`. */
    readonly portalUser: string | null,
  ) {
    this.idempotencyScope = `admin:${tokenName}`;
  }
}
