import { AppError, NotFound } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { PartnerBrand } from '../common/partner-brand.js';
import type { AdminScope, KeyScope, PortalScope } from '../common/scopes.js';
import type { ReadScope, TenantScope } from '../common/tenant-scope.js';
import type { IdempotencyOwner } from '../infra/idempotency/index.js';

/** Caller of the partner API: a partner in one mode, through one key. */
export class PartnerPrincipal implements IdempotencyOwner, TenantScope {
  /**
   * Idempotency keys belong to partner and mode, not to the API key, so that a rotation between retries still
   * deduplicates (D17).
   */
  readonly idempotencyScope: string;

  constructor(
    readonly partnerId: string,
    readonly partnerName: string,
    readonly mode: Mode,
    readonly keyId: string,
    /** Null holds every scope. */
    readonly scopes: readonly KeyScope[] | null,
    private readonly hasSpendLimit: boolean,
  ) {
    this.idempotencyScope = `${partnerId}:${mode}`;
  }

  /** The key if a spend limit restricts its purchases, otherwise null. */
  get limitedKeyId(): string | null {
    return this.hasSpendLimit ? this.keyId : null;
  }
}

/** Caller of the internal admin API: the holder of one of `ADMIN_TOKENS`. */
export class AdminPrincipal implements IdempotencyOwner {
  readonly idempotencyScope: string;

  constructor(
    /** The name before the colon in `ADMIN_TOKENS`. */
    readonly tokenName: string,
    /** The portal user of the optional header `X-Actor`. */
    readonly portalUser: string | null,
    readonly scopes: readonly AdminScope[] = [],
  ) {
    this.idempotencyScope = `admin:${tokenName}`;
  }

  // A token reaches every partner in both modes and needs no step-up.
  readonly isYoung = true;

  chosenMode<T extends Mode | null | undefined>(mode: T): T {
    return mode;
  }

  assertSees(): void {}

  assertReaches(): void {}

  assertYoung(): void {}

  holds(scope: AdminScope): boolean {
    return this.scopes.includes(scope);
  }

  /** No restriction: a token reads every partner's rows. */
  readonly anyMode = null;

  locationOf(path: string): { readonly location: string } {
    return { location: `/internal/v1/${path}` };
  }
}

/** A session of the partner portal, found by its cookie. */
export interface PortalSession {
  readonly id: string;
  readonly partnerId: string;
  readonly partnerName: string;
  readonly partnerStatus: string;
  readonly partnerBrand: PartnerBrand;
  /** Name of the admin token that created it. */
  readonly mintedBy: string;
  readonly actorId: string;
  readonly actorName: string | null;
  readonly scopes: readonly PortalScope[];
  readonly modes: readonly Mode[];
  readonly returnUrl: string | null;
  readonly expiresAt: Date;
  /** End of the period in which the session needs no step-up, by the database's clock. */
  readonly stepUpUntil: Date;
  readonly isYoung: boolean;
}

/** Caller of the portal: a person in a session, which determines partner, modes and scopes (D50). */
export class PortalPrincipal implements IdempotencyOwner {
  readonly idempotencyScope: string;
  /** For the audit log: the token that created the session, its actor, and the session. */
  readonly tokenName: string;
  readonly portalUser: string;
  readonly sessionId: string;
  readonly partnerId: string;

  constructor(readonly session: PortalSession) {
    this.idempotencyScope = `portal:${session.id}`;
    this.tokenName = session.mintedBy;
    this.portalUser = session.actorId;
    this.sessionId = session.id;
    this.partnerId = session.partnerId;
  }

  /** The mode in the call. Without one, Live or the session's only mode. @throws AppError `forbidden` */
  chosenMode(mode: Mode | undefined | null): Mode {
    const { modes } = this.session;
    if (mode === undefined || mode === null) return modes.includes('live') ? 'live' : 'sandbox';
    if (modes.includes(mode)) return mode;
    throw new AppError('forbidden', {
      detail: `Your access does not include ${mode === 'live' ? 'Live' : 'Sandbox'}. Ask for access that does.`,
    });
  }

  /** Scope of a read by id: the partner's rows in every mode of the session. */
  get anyMode(): ReadScope & { readonly mode: readonly Mode[] } {
    return { partnerId: this.partnerId, mode: this.session.modes };
  }

  /** Scope of a list in the call's mode. @throws AppError `forbidden` */
  inMode({ mode }: { readonly mode?: Mode | null }): TenantScope {
    return { partnerId: this.partnerId, mode: this.chosenMode(mode) };
  }

  /** Hides rows of a mode that the session does not include. @throws NotFound */
  assertSees(mode: Mode): void {
    if (!this.session.modes.includes(mode)) throw new NotFound();
  }

  /** Hides another partner's rows as well. @throws NotFound */
  assertReaches({ partnerId, mode }: TenantScope): void {
    if (partnerId !== this.partnerId) throw new NotFound();
    this.assertSees(mode);
  }

  holds(scope: AdminScope): boolean {
    return (this.session.scopes as readonly AdminScope[]).includes(scope);
  }

  /** Empty, because the portal's pages follow no `Location`. */
  locationOf(_path: string): { readonly location?: never } {
    return {};
  }

  get isYoung(): boolean {
    return this.session.isYoung;
  }

  /** @throws AppError `step_up_required` for a session that is older than 15 minutes */
  assertYoung(): void {
    if (!this.isYoung) throw new AppError('step_up_required');
  }
}

/** Caller of a handler that the admin API and the portal share. */
export type AdminOrPortalPrincipal = AdminPrincipal | PortalPrincipal;
