import { Injectable } from '@nestjs/common';
import { Transactions } from '../infra/database/index.js';
import { OrderJobsRepository } from '../orders/index.js';
import { ProviderRegistry, type UpstreamHint } from '../providers/index.js';
import { TopupJobsRepository } from '../topups/index.js';
import { EsimPollsRepository } from './esim-polls.repository.js';
import { PollBell } from './poll-bell.js';

/** However many callbacks arrive, nothing is asked for again sooner after a look. */
const REST_MS = 1_000;
/** A purchase in an order is its reference and a number. */
const PART_NUMBER = /-\d{1,4}$/;

/** Takes callbacks of wholesalers as what they are: hints that something may have changed, true or forged. */
@Injectable()
export class TakeCallback {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly polls: EsimPollsRepository,
    private readonly orders: OrderJobsRepository,
    private readonly topups: TopupJobsRepository,
    private readonly transactions: Transactions,
    private readonly bell: PollBell,
  ) {}

  /** Whether a connected wholesaler is called so. */
  knows(provider: string): boolean {
    return this.providers.wholesalers.some((wholesaler) => wholesaler.name === provider);
  }

  /**
   * Makes everything that the callback is about due for a question to its upstream; nothing else is believed or kept.
   * Answers the kinds of its hints. @throws Error of the database: the sender is to try again.
   */
  async execute(provider: string, body: unknown): Promise<readonly UpstreamHint['about'][]> {
    const hints = this.providers.getWholesaler(provider).hintsOf(body);
    const references = hints.flatMap((hint) => (hint.about === 'order' ? namesOf(hint.reference) : []));
    const esims = hints.flatMap((hint) => (hint.about === 'esim' ? [hint.providerEsimId] : []));
    if (references.length + esims.length > 0) {
      // Locked in the order of D40: orders, top-ups, eSIMs by id.
      await this.transactions.run(async (tx) => {
        if (references.length > 0) {
          await this.orders.makeDue(tx, { provider, references, restMs: REST_MS });
          await this.topups.makeDue(tx, { provider, references, restMs: REST_MS });
        }
        const owed = esims.length > 0 ? await this.polls.hint(tx, provider, esims, REST_MS) : 0;
        if (owed > 0) tx.afterCommit(() => this.bell.ring(provider));
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
