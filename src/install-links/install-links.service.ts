import { Inject, Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound } from '../common/errors/index.js';
import { newId } from '../common/ids.js';
import type { Page } from '../common/page.js';
import type { ReadScope } from '../common/tenant-scope.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { type EsimEntity, EsimsRepository } from '../esims/index.js';
import type { ListOptions, Tx } from '../infra/database/index.js';
import type { InstallLinkEntity } from './install-link.entity.js';
import { InstallLinksRepository, type LinkPlace } from './install-links.repository.js';
import type { Language } from './languages.js';
import { hashAccessCode, hashToken, newAccessCode, newToken } from './link-secrets.js';

/** Limits the rows of an eSIM; revoked and purged links do not count. */
const MAX_PER_ESIM = 20;

export interface InstallLinkTerms {
  readonly expiresInDays: number;
  readonly locale: Language | null;
  /** Whether the page asks for an access code first. */
  readonly accessCode: boolean;
}

/** A link with its secrets, which are known only at this moment. */
export interface CreatedInstallLink {
  readonly link: InstallLinkEntity;
  readonly url: string;
  readonly accessCode: string | null;
}

/** Creates, lists and revokes a partner's install links (D63). */
@Injectable()
export class InstallLinksService {
  constructor(
    private readonly links: InstallLinksRepository,
    private readonly esims: EsimsRepository,
    private readonly audit: AuditLog,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'install'>,
  ) {}

  /** The eSIM that a link is for. @throws NotFound */
  async getEsim(scope: ReadScope, esimId: string, tx?: Tx): Promise<EsimEntity> {
    const esim = await this.esims.find(scope, esimId, tx?.manager);
    if (!esim) throw new NotFound();
    return esim;
  }

  /**
   * @param by the person in the portal; null for a call with an API key, which the call log records
   * @throws AppError `not_supported` without `INSTALL_URL`, `esim_expired`, `esim_not_ready` for a canceled eSIM, `limit_reached`
   */
  async create(
    tx: Tx,
    { id: esimId, partnerId, mode }: EsimEntity,
    terms: InstallLinkTerms,
    by: ChangeAuthor | null = null,
  ): Promise<CreatedInstallLink> {
    const { url: base } = this.config.install;
    if (base === null)
      throw new AppError('not_supported', {
        detail: 'Install links are not set up here. Show the QR code or the activation code instead.',
      });
    // The eSIM's row makes the limit exact, and keeps a purge from deleting the eSIM in the meantime.
    const esim = await this.esims.findForUpdate(tx, { partnerId, mode }, esimId);
    if (!esim) throw new NotFound();
    if (esim.status === 'expired' || esim.status === 'canceled')
      throw new AppError(esim.status === 'expired' ? 'esim_expired' : 'esim_not_ready', {
        detail: `The eSIM is ${esim.status}, so nobody can install it. Order a new one.`,
      });
    if ((await this.links.countOfEsim(tx, esimId)) >= MAX_PER_ESIM)
      throw new AppError('limit_reached', {
        detail: `An eSIM can have at most ${MAX_PER_ESIM} install links. Revoke the ones that you no longer need.`,
      });
    const token = newToken();
    const accessCode = terms.accessCode ? newAccessCode() : null;
    const { locale, expiresInDays } = terms;
    const link = await this.links.insert(tx, {
      id: newId('ilk'),
      partnerId,
      mode,
      esimId,
      tokenHash: hashToken(token),
      locale,
      accessCodeHash: accessCode === null ? null : hashAccessCode(token, accessCode),
      expiresInDays,
    });
    const details = { expires_at: link.expiresAt.toISOString(), locale, access_code: terms.accessCode };
    if (by) await this.record(tx, by, 'created', link, details);
    return { link, url: `${base}/i/${token}`, accessCode };
  }

  /** @throws NotFound */
  async get(scope: ReadScope, place: LinkPlace): Promise<InstallLinkEntity> {
    const link = await this.links.find(scope, place);
    if (!link) throw new NotFound();
    return link;
  }

  /** @throws NotFound when the eSIM does not exist */
  async list(scope: ReadScope, esimId: string, options: ListOptions): Promise<Page<InstallLinkEntity>> {
    await this.getEsim(scope, esimId);
    return this.links.list(scope, esimId, options);
  }

  /** Deletes the link; its page is a 404 from then on. @throws NotFound */
  async revoke(tx: Tx, scope: ReadScope, place: LinkPlace, by: ChangeAuthor | null = null): Promise<void> {
    const link = await this.get(scope, place);
    if (!(await this.links.delete(tx, scope, place))) throw new NotFound();
    if (by) await this.record(tx, by, 'revoked', link);
  }

  private record(
    tx: Tx,
    by: ChangeAuthor,
    change: 'created' | 'revoked',
    { id, partnerId, esimId }: InstallLinkEntity,
    details: Readonly<Record<string, string | boolean | null>> = {},
  ): Promise<void> {
    const action = `install_link.${change}`;
    return this.audit.record(tx, {
      ...by,
      action,
      partnerId,
      subjectId: id,
      details: { esim_id: esimId, ...details },
    });
  }
}
