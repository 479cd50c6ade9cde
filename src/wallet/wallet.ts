import { Injectable } from '@nestjs/common';
import { KeySpending, type ReturnedSpending } from '../auth/index.js';
import { AppError } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { Money } from '../common/money.js';
import type { Tx } from '../infra/database/index.js';
import { type ChargeSubject, subjectOf } from './wallet-sql.js';
import { WalletHoldsRepository } from './wallet-holds.repository.js';

export interface HoldRequest {
  readonly partnerId: string;
  readonly mode: Mode;
  /** The whole price; 0 holds nothing. */
  readonly money: Money;
  readonly subject: ChargeSubject;
  /** The partner's own id for the order or top-up, shown on the partner's statement. */
  readonly reference?: string | null;
  /** The key that buys if it has a spend limit, which then counts the price; null otherwise. */
  readonly limitedKeyId?: string | null;
}

/** How a hold ends. */
export interface Settlement {
  readonly mode: Mode;
  readonly subject: ChargeSubject;
  readonly capturedAmount: number;
  /** The part that is not captured, if a key with a spend limit bought it. */
  readonly returned?: ReturnedSpending | null;
}

/**
 * Charges orders and top-ups to a partner's prepaid money. Holds the price at acceptance, captures or releases it at
 * the end, and refunds later (D22, D27). Does nothing in Sandbox (D26). Runs in the caller's transaction, which has
 * already locked the row of the order or top-up (D40).
 */
@Injectable()
export class Wallet {
  constructor(
    private readonly holds: WalletHoldsRepository,
    private readonly spending: KeySpending,
  ) {}

  /** Reserves the price. @throws AppError `spend_limit_reached`, `insufficient_balance` */
  async hold(tx: Tx, request: HoldRequest): Promise<void> {
    const { partnerId, mode, money, subject, reference = null, limitedKeyId = null } = request;
    assertAmount(money.amount);
    if (money.amount === 0) return;
    // The key's spending precedes the wallet (D40), so a refused purchase never waits for the wallet's row.
    if (limitedKeyId !== null) await this.spending.spend(tx, limitedKeyId, money);
    if (mode === 'sandbox') return;
    const covered = await this.holds.hold(tx, partnerId, money, subject, reference);
    if (!covered) throw new AppError('insufficient_balance');
  }

  /**
   * Captures `capturedAmount` of each hold as a charge and releases the rest; 0 releases everything. A repeat does
   * nothing, because a hold is resolved once. Runs at most one statement for all orders, and one for all top-ups.
   * @throws Error when a capture was never held
   */
  async settle(tx: Tx, settlements: readonly Settlement[]): Promise<void> {
    for (const { capturedAmount } of settlements) assertAmount(capturedAmount);
    await this.spending.giveBack(
      tx,
      settlements.flatMap(({ returned }) => returned ?? []),
    );
    const live = settlements.filter(({ mode }) => mode === 'live');
    const byColumn = Map.groupBy(live, ({ subject }) => subjectOf(subject).column);
    for (const [column, some] of byColumn) {
      const holds = some.map(({ subject, capturedAmount }) => ({
        subjectId: subjectOf(subject).id,
        captured: capturedAmount,
      }));
      const unheld = await this.holds.settle(tx, column, holds);
      // A price of 0 has no hold and nothing to capture.
      if (unheld.length > 0) throw new Error(`nothing was held for ${unheld.join(', ')}`);
    }
  }

  /**
   * Refunds part of a capture as a separate transaction. The caller ensures that it happens once.
   * @param refund.isHeldAgain whether `tx` then holds the amount again, which does not make the wallet low once more
   * @throws Error when the refunds would exceed the capture
   */
  async refund(
    tx: Tx,
    {
      mode,
      subject,
      amount,
      returned,
      isHeldAgain = false,
    }: {
      mode: Mode;
      subject: ChargeSubject;
      amount: number;
      returned?: ReturnedSpending | null;
      isHeldAgain?: boolean;
    },
  ): Promise<void> {
    assertAmount(amount);
    if (returned) await this.spending.giveBack(tx, [returned]);
    if (mode === 'sandbox' || amount === 0) return;
    if (!(await this.holds.refund(tx, subject, amount, isHeldAgain)))
      throw new Error('more would be refunded than was captured');
  }
}

function assertAmount(amount: number): void {
  if (!Number.isSafeInteger(amount) || amount < 0)
    throw new RangeError('an amount must be a whole number >= 0');
}
