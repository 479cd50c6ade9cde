import { AppError, NotFound, ValidationFailed } from '../common/errors/index.js';
import { MODES, type Mode } from '../common/mode.js';
import type { AdminScope, PortalScope } from '../common/scopes.js';
import type { ReadScope, TenantScope } from '../common/tenant-scope.js';
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
    readonly scopes: readonly AdminScope[] = [],
  ) {
    this.idempotencyScope = `admin:${tokenName}`;
  }

  // A token reaches every partner in both modes, and never steps up: what a session is asked, it always passes.
  readonly isYoung = true;

  chosenMode<T extends Mode | null | undefined>(mode: T): T {
    return mode;
  }

  assertSees(): void {}

  assertReaches(): void {}

  assertYoung(): void {}

  locationOf(path: string): { readonly location: string } {
    return { location: `/internal/v1/${path}` };
  }
}

/** A session of the partner portal as the check of its cookie found it (D50). */
export interface PortalSession {
  readonly id: string;
  readonly partnerId: string;
  readonly partnerName: string;
  readonly partnerStatus: string;
  /** The name of the admin token that made it. */
  readonly mintedBy: string;
  readonly actorId: string;
  readonly actorName: string | null;
  readonly scopes: readonly PortalScope[];
  readonly modes: readonly Mode[];
  readonly returnUrl: string | null;
  readonly expiresAt: Date;
  /** Until then, by the database's clock, the session is young enough for what needs a step-up. */
  readonly stepUpUntil: Date;
  readonly isYoung: boolean;
}

/** Who calls the portal: somebody in a session, which says for which partner, in which modes, and what it may do (D50). */
export class PortalPrincipal implements IdempotencyOwner {
  readonly idempotencyScope: string;
  /** For the audit log: the token that made the session, its actor, and the session. */
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

  /** The mode that the call names. @throws ValidationFailed when it names none; AppError `forbidden` */
  chosenMode(mode: Mode | undefined | null): Mode {
    if (mode === undefined || mode === null) {
      const message = `must be one of ${MODES.join(', ')}`;
      throw new ValidationFailed([{ pointer: '?mode', code: 'required', message }]);
    }
    if (this.session.modes.includes(mode)) return mode;
    throw new AppError('forbidden', {
      detail: `This session does not allow ${mode}. Ask who gave you the link for one that does.`,
    });
  }

  /** What a read by id may show: the partner's rows in every mode that the session allows. */
  get anyMode(): ReadScope {
    return { partnerId: this.partnerId, mode: this.session.modes };
  }

  /** A list of the mode that the call names. @throws ValidationFailed when it names none; AppError `forbidden` */
  inMode({ mode }: { readonly mode?: Mode | null }): TenantScope {
    return { partnerId: this.partnerId, mode: this.chosenMode(mode) };
  }

  /** What is of a mode that the session does not allow is not there for it. @throws NotFound */
  assertSees(mode: Mode): void {
    if (!this.session.modes.includes(mode)) throw new NotFound();
  }

  /** Another partner's row is not there for the session either. @throws NotFound */
  assertReaches({ partnerId, mode }: TenantScope): void {
    if (partnerId !== this.partnerId) throw new NotFound();
    this.assertSees(mode);
  }

  /** Nothing: the portal's pages follow no `Location`. */
  locationOf(_path: string): { readonly location?: never } {
    return {};
  }

  get isYoung(): boolean {
    return this.session.isYoung;
  }

  /** @throws AppError `step_up_required` for a session that is older than 15 minutes (D50) */
  assertYoung(): void {
    if (!this.isYoung) throw new AppError('step_up_required');
  }
}

/** Who calls a handler that the admin API and the portal share. */
export type AdminOrPortalPrincipal = AdminPrincipal | PortalPrincipal;
