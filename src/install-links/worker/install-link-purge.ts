import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { AFTER_START_MS, Sweeps } from '../../infra/sweeps.js';
import { InstallLinksRepository } from '../install-links.repository.js';

const PURGE_EVERY_MS = 600_000;

/** Deletes expired install links past their retention (D44). */
@Injectable()
export class InstallLinkPurge {
  constructor(
    private readonly links: InstallLinksRepository,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'retention'>,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'install_links.purge',
      intervalMs: PURGE_EVERY_MS,
      firstAfterMs: AFTER_START_MS,
      run: (stopping) => this.purge(stopping),
    });
  }

  /** Returns the number of deleted links. */
  async purge(stopping?: AbortSignal): Promise<number> {
    const { installLinkDays } = this.config.retention;
    return purgeInSteps((limit) => this.links.purge(installLinkDays, limit), { stopping });
  }
}
