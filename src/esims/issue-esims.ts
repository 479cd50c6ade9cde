import { Injectable } from '@nestjs/common';
import type { ActivationPolicy } from '../catalog/index.js';
import { DAY_MS } from '../common/durations.js';
import { newId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import { SecretBox } from '../infra/crypto/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderProfile } from '../providers/index.js';
import type { InstallData } from './esim.js';
import { firstWarning } from './expiry-warning.js';
import { EsimsRepository, type NewEsim } from './esims.repository.js';

/** Used if neither the provider nor the package states a term of installation (D23). */
const INSTALL_WITHIN_DAYS = 180;
/** No customer installs sooner, and a provider may at first report a new eSIM as unknown. */
const FIRST_POLL_AFTER_MS = 300_000;

/** Fields of new eSIMs that come from the order. */
export interface IssueTerms {
  readonly orderId: string;
  readonly partnerId: string;
  readonly mode: Mode;
  readonly provider: string;
  readonly packageId: string;
  /** Null for unlimited data. */
  readonly dataBytes: number | null;
  readonly days: number | null;
  readonly validityDays: number;
  readonly activationPolicy: ActivationPolicy;
  /** Term of installation of the package at the time of sale; null if it stated none. */
  readonly installWithinDays: number | null;
  readonly issuedAt: Date;
}

export interface IssuedEsim {
  readonly esim_id: string;
  readonly iccid: string;
}

/** An order that becomes issued, with its provisioned profiles. */
export interface EsimIssue {
  readonly terms: IssueTerms;
  readonly profiles: readonly ProviderProfile[];
}

/** Creates eSIMs from provisioned profiles, in the transaction that marks their orders as issued. */
@Injectable()
export class IssueEsims {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly secrets: SecretBox,
  ) {}

  /** Returns each order's eSIMs, in the order of `issues`. */
  issue(tx: Tx, issues: readonly EsimIssue[]): readonly (readonly IssuedEsim[])[] {
    const rows = issues.map(({ terms, profiles }) => profiles.map((profile) => this.toRow(terms, profile)));
    if (rows.length > 0) this.esims.insert(tx, rows.flat());
    return rows.map((some) => some.map(({ id, iccid }) => ({ esim_id: id, iccid })));
  }

  private toRow(terms: IssueTerms, profile: ProviderProfile): NewEsim {
    const id = newId('esim');
    const { issuedAt } = terms;
    const expiresAt =
      terms.activationPolicy === 'on_purchase'
        ? new Date(issuedAt.getTime() + terms.validityDays * DAY_MS)
        : null;
    const installWithinDays = terms.installWithinDays ?? INSTALL_WITHIN_DAYS;
    const install: InstallData = {
      smdpAddress: profile.smdpAddress,
      matchingId: profile.matchingId,
      confirmationCode: profile.confirmationCode,
      activationCode: profile.activationCode,
      pin: profile.pin,
      puk: profile.puk,
    };
    return {
      id,
      partnerId: terms.partnerId,
      mode: terms.mode,
      orderId: terms.orderId,
      packageId: terms.packageId,
      iccid: profile.iccid,
      apn: profile.apn,
      msisdn: profile.msisdn,
      pooled: profile.pooled,
      installSecrets: this.secrets.seal(JSON.stringify(install), id),
      totalBytes: terms.dataBytes,
      usageAsOf: issuedAt,
      usageSource: terms.mode === 'sandbox' ? 'simulated' : 'poll',
      days: terms.days,
      validityDays: terms.validityDays,
      activationPolicy: terms.activationPolicy,
      installBy: profile.installBy ?? new Date(issuedAt.getTime() + installWithinDays * DAY_MS),
      expiresAt,
      expiryWarningAt: firstWarning(expiresAt, issuedAt),
      provider: terms.provider,
      providerEsimId: profile.providerEsimId,
      nextPollAt: terms.mode === 'live' ? new Date(issuedAt.getTime() + FIRST_POLL_AFTER_MS) : null,
    };
  }
}
