import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { DAY_MS } from '../../common/durations.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { ChangeEsim, type ControlAction, type EsimEntity, toProviderEsim } from '../../esims/index.js';
import { Transactions } from '../../infra/database/index.js';
import { JobRunner } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import {
  callProvider,
  type EsimProvider,
  type ProviderFailure,
  ProviderOutcomeUnknown,
  ProviderRegistry,
  ProviderUnavailable,
  retryDelayMs,
} from '../../providers/index.js';
import { type ClaimedAction, EsimActionsRepository } from '../esim-actions.repository.js';

/** Actions of one provider that are sent at the same time: polls and purchases need its calls more. */
const AT_ONCE = 4;
const MAX_PROVIDERS = 64;
/** Bounds of the wait between two readings, which grows with the time since the call. */
const LOOK_AFTER_MS = { min: 2_000, max: 300_000 };
/** An eSIM that the wholesaler does not describe for so long would otherwise be blocked by its action for ever. */
const WITHOUT_READING_MS = DAY_MS;

const WITHOUT_EFFECT: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The wholesaler did not carry out the action. Request it again.',
};
const NOT_OFFERED: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The wholesaler does not offer this action.',
};

/** The provider's status of an eSIM on which the action has taken effect. */
const HAS_EFFECT: Readonly<Record<ControlAction, (status: string) => boolean>> = {
  suspend: (status) => status === 'suspended',
  resume: (status) => status === 'issued' || status === 'active' || status === 'depleted',
  revoke: (status) => status === 'canceled',
};

/**
 * Carries out the actions that partners request for eSIMs (D70). Each is sent at most once. If its outcome is unknown,
 * readings decide: the action took effect, or it failed once the read lag is over, or after a day without a reading.
 */
@Injectable()
export class EsimActionWorker implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly runner: JobRunner<ClaimedAction>;

  constructor(
    private readonly actions: EsimActionsRepository,
    private readonly changes: ChangeEsim,
    private readonly providers: ProviderRegistry,
    private readonly transactions: Transactions,
    @Inject(APP_CONFIG)
    {
      sweepIntervalMs,
      leaseMs,
      shutdownTimeoutMs,
    }: Pick<AppConfig, 'sweepIntervalMs' | 'leaseMs' | 'shutdownTimeoutMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.runner = new JobRunner(
      {
        // A claim lasts longer than the call, so nothing renews it.
        claim: async (provider, limit) => ({
          items: await actions.claim(provider, limit, providers.getByName(provider).timeoutMs + leaseMs),
          nextDueInMs: null,
          more: true,
        }),
        listGroupsDue: async () =>
          (await actions.listProvidersDue()).filter((name) => providers.findByName(name) !== null),
        renew: () => Promise.resolve(),
      },
      async (claimed) => {
        await this.carryOut(claimed);
        return { refetch: true };
      },
      {
        name: 'esims.actions',
        concurrencyPerGroup: AT_ONCE,
        concurrency: MAX_PROVIDERS,
        sweepIntervalMs,
        leaseMs,
        drainMs: shutdownTimeoutMs,
        recordMs: 0,
        logger,
        notifyAt: () => undefined,
      },
    );
  }

  onApplicationBootstrap(): void {
    this.runner.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.runner.stop();
  }

  private async carryOut(claimed: ClaimedAction): Promise<void> {
    try {
      const failure = await this.outcomeOf(claimed);
      if (failure === 'unknown') await this.actions.postpone(claimed, lookAfterMs(claimed), { sent: true });
      else await this.transactions.run((tx) => this.changes.settle(tx, claimed.esim, failure));
    } catch (error) {
      const { id: esimId, pendingAction: action } = claimed.esim;
      const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
      const line = { event: 'esim.action_failed', esimId, action, err: error };
      this.logger[known ? 'warn' : 'error'](line, 'no outcome from the provider; looking again');
      const sent = claimed.mayBeSent || !(error instanceof ProviderUnavailable);
      await this.actions.postpone(claimed, retryDelayMs(1, error), { sent });
    }
  }

  /** Null if the action has taken effect. @throws ProviderOutcomeUnknown, ProviderUnavailable */
  private async outcomeOf(claimed: ClaimedAction): Promise<ProviderFailure | null | 'unknown'> {
    const { esim, mayBeSent, sendWindowStart } = claimed;
    const provider = this.providers.getByName(esim.provider);
    const { controlEsim } = provider;
    if (controlEsim === null) return NOT_OFFERED;
    if (mayBeSent) return this.lookForEffect(claimed, provider);
    const control = { action: actionOf(esim), esim: toProviderEsim(esim), reference: esim.orderId };
    const result = await callProvider(
      provider,
      (signal) => controlEsim.call(provider, control, signal),
      sendWindowStart,
    );
    return result.state === 'done' ? null : result.failure;
  }

  private async lookForEffect(
    { esim, sentForMs }: ClaimedAction,
    { name, timeoutMs, readLagMs }: EsimProvider,
  ): Promise<ProviderFailure | null | 'unknown'> {
    // The simulator never loses a call.
    if (esim.mode === 'sandbox') return null;
    const provider = this.providers.getLiveProvider(name);
    const [reading] = await callProvider(provider, (signal) =>
      provider.fetchUsage([toProviderEsim(esim)], signal),
    );
    if (reading && HAS_EFFECT[actionOf(esim)](reading.status)) return null;
    return sentForMs > (reading ? timeoutMs + readLagMs : WITHOUT_READING_MS) ? WITHOUT_EFFECT : 'unknown';
  }
}

function lookAfterMs({ sentForMs }: ClaimedAction): number {
  return Math.min(LOOK_AFTER_MS.max, Math.max(LOOK_AFTER_MS.min, sentForMs / 2));
}

function actionOf({ pendingAction }: EsimEntity): ControlAction {
  if (pendingAction === null || pendingAction === 'replace') throw new Error('no action is due');
  return pendingAction;
}
