import { Injectable } from '@nestjs/common';
import { Transactions } from '../infra/database/index.js';
import { OrderJobsRepository } from '../orders/index.js';
import { type ProviderHint, ProviderRegistry } from '../providers/index.js';
import { TopupJobsRepository } from '../topups/index.js';
import { EsimPollsRepository } from './esim-polls.repository.js';

/** Tells the poller of this process that a hint waits. Best effort: the sweeps of all workers find it too. */
@Injectable()
export class PollNotifier {
  private listener: ((provider: string) => void) | null = null;

  /** One listener: the poller, where this process has it. */
  onNotify(listener: (provider: string) => void): void {
    this.listener = listener;
  }

  notify(provider: string): void {
    this.listener?.(provider);
  }
}

/** However many callbacks arrive, nothing is asked for again sooner after a look. */
const COOLDOWN_MS = 1_000;
/** A purchase in an order is its reference and a number. */
const PART_NUMBER = /-\d{1,4}$/;

/** Takes callbacks of providers as what they are: hints that something may have changed, true or forged. */
@Injectable()
export class TakeCallback {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly polls: EsimPollsRepository,
    private readonly orders: OrderJobsRepository,
    private readonly topups: TopupJobsRepository,
    private readonly transactions: Transactions,
    private readonly notifier: PollNotifier,
  ) {}

  /** Whether a connected provider is called so. */
  knows(provider: string): boolean {
    return this.providers.liveProviders.some((liveProvider) => liveProvider.name === provider);
  }

  /**
   * Makes everything that the callback is about due for a question to its provider; nothing else is believed or kept.
   * Answers the kinds of its hints. @throws Error of the database: the sender is to try again.
   */
  async execute(provider: string, body: unknown): Promise<readonly ProviderHint['about'][]> {
    const hints = this.providers.getLiveProvider(provider).hintsOf(body);
    const references = hints.flatMap((hint) => (hint.about === 'order' ? namesOf(hint.reference) : []));
    const esims = hints.flatMap((hint) => (hint.about === 'esim' ? [hint.providerEsimId] : []));
    if (references.length + esims.length > 0) {
      // Locked in the order of D40: orders, top-ups, eSIMs by id.
      await this.transactions.run(async (tx) => {
        if (references.length > 0) {
          await this.orders.makeDue(tx, { provider, references, cooldownMs: COOLDOWN_MS });
          await this.topups.makeDue(tx, { provider, references, cooldownMs: COOLDOWN_MS });
        }
        const owed = esims.length > 0 ? await this.polls.hint(tx, provider, esims, COOLDOWN_MS) : 0;
        if (owed > 0) tx.afterCommit(() => this.notifier.notify(provider));
      });
    }
    return hints.map((hint) => hint.about);
  }
}

/** An order's or a top-up's reference, also where the hint names one purchase of an order. */
function namesOf(reference: string): readonly string[] {
  const whole = reference.replace(PART_NUMBER, '');
  return whole === reference ? [reference] : [reference, whole];
}
