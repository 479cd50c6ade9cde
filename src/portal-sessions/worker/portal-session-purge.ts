import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { AFTER_START_MS, Sweeps } from '../../infra/sweeps.js';
import { PortalSessionsRepository } from '../portal-sessions.repository.js';

const PURGE_EVERY_MS = 600_000;

/** Deletes ended portal sessions past their retention (D44); the audit log keeps their changes. */
@Injectable()
export class PortalSessionPurge {
  constructor(
    private readonly sessions: PortalSessionsRepository,
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'retention'>,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'portal_sessions.purge',
      intervalMs: PURGE_EVERY_MS,
      firstAfterMs: AFTER_START_MS,
      run: (stopping) => this.purge(stopping),
    });
  }

  async purge(stopping?: AbortSignal): Promise<number> {
    const { portalSessionDays } = this.config.retention;
    return purgeInSteps((limit) => this.sessions.purge(portalSessionDays, limit), { stopping });
  }
}
