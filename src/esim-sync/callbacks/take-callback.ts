import { Injectable } from '@nestjs/common';
import { Transactions } from '../../infra/database/index.js';
import { OrderJobsRepository } from '../../orders/index.js';
import { type ProviderHint, ProviderRegistry } from '../../providers/index.js';
import { TopupJobsRepository } from '../../topups/index.js';
import { EsimPollsRepository } from '../esim-polls.repository.js';

/** Notifies this process's poller of a hint. Best effort: the sweeps of all workers find it too. */
@Injectable()
export class PollNotifier {
  private listener: ((provider: string) => void) | null = null;

  /** Registers one listener: this process's poller, if it has one. */
  onNotify(listener: (provider: string) => void): void {
    this.listener = listener;
  }

  notify(provider: string): void {
    this.listener?.(provider);
  }
}

/** Minimum interval between polls, however many callbacks arrive. */
const COOLDOWN_MS = 1_000;
/** The id of a purchase in an order is the order's reference plus a number. */
const PART_NUMBER = /-\d{1,4}$/;

/** Treats every provider callback, genuine or forged, only as a hint that an eSIM or purchase may have changed. */
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

  /** Whether a provider of this name is connected. */
  knows(provider: string): boolean {
    return this.providers.liveProviders.some((liveProvider) => liveProvider.name === provider);
  }

  /**
   * Makes every object that the callback names due for a provider query; nothing else in it is trusted or stored.
   * Returns the kinds of its hints. @throws a database error: the sender should retry
   */
  async take(provider: string, body: unknown): Promise<readonly ProviderHint['about'][]> {
    const hints = this.providers.getLiveProvider(provider).hintsOf(body);
    const references = hints.flatMap((hint) => (hint.about === 'order' ? namesOf(hint.reference) : []));
    const esims = hints.flatMap((hint) => (hint.about === 'esim' ? [hint.providerEsimId] : []));
    if (references.length + esims.length > 0) {
      // Lock order (D40): orders, top-ups, eSIMs by id.
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

/** Reference of an order or top-up, even if the hint names one purchase of an order. */
function namesOf(reference: string): readonly string[] {
  const whole = reference.replace(PART_NUMBER, '');
  return whole === reference ? [reference] : [reference, whole];
}

/** The part that the port for callbacks needs. */
export type CallbackTaker = Pick<TakeCallback, 'knows' | 'take'>;
