import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError } from '../common/errors/index.js';
import type { Money } from '../common/money.js';
import type { Tx } from '../infra/database/index.js';
import type { LedgerTransactionEntity, WalletEntity } from './wallet.entity.js';
import { type Posting, WalletsRepository } from './wallets.repository.js';

export interface PostingCommand {
  readonly partnerId: string;
  /** Above 0 for a deposit; signed and not 0 for an adjustment. */
  readonly money: Money;
  /** Unique among the partner's deposits and adjustments forever. */
  readonly reference: string;
  readonly note: string | null;
}

/** The portal team's operations on a wallet: deposits, corrections, and the low-balance warning (D27). */
@Injectable()
export class ManageWallet {
  constructor(
    private readonly wallets: WalletsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** @throws AppError `reference_taken`, `conflict` when the wallet would exceed its maximum */
  async deposit(tx: Tx, by: ChangeAuthor, command: PostingCommand): Promise<LedgerTransactionEntity> {
    return this.post(tx, by, 'deposit', command);
  }

  /** @throws AppError `reference_taken`, `conflict` when the available amount would become negative */
  async adjust(tx: Tx, by: ChangeAuthor, command: PostingCommand): Promise<LedgerTransactionEntity> {
    return this.post(tx, by, 'adjustment', command);
  }

  /** Sets the available amount below which the wallet counts as low; null: never. */
  async setLowBalance(
    tx: Tx,
    by: ChangeAuthor,
    change: { partnerId: string; currency: string; lowBalanceAmount: number | null },
  ): Promise<WalletEntity> {
    const { partnerId, currency, lowBalanceAmount } = change;
    await this.wallets.open(tx, partnerId, currency);
    await this.wallets.setLowBalance(tx, partnerId, currency, lowBalanceAmount);
    await this.audit.record(tx, {
      ...by,
      action: 'wallet.low_balance_set',
      partnerId,
      subjectId: partnerId,
      details: { currency, low_balance_amount: lowBalanceAmount },
    });
    return this.wallets.get(tx, partnerId, currency);
  }

  private async post(
    tx: Tx,
    by: ChangeAuthor,
    type: Posting['type'],
    command: PostingCommand,
  ): Promise<LedgerTransactionEntity> {
    const { partnerId, money, reference } = command;
    await this.wallets.open(tx, partnerId, money.currency);
    const posted = await this.wallets.post(tx, { ...command, type, actor: nameOf(by) });
    if (!posted)
      throw new AppError('conflict', {
        detail:
          'The balance does not allow this amount. Fetch the wallet, and deduct at most the available amount.',
      });
    await this.audit.record(tx, {
      ...by,
      action: `wallet.${type}`,
      partnerId,
      subjectId: posted.id,
      details: { amount: money.amount, currency: money.currency, reference, note: command.note },
    });
    return posted;
  }
}

function nameOf({ actor }: ChangeAuthor): string {
  if (actor === 'system') return actor;
  return actor.portalUser === null ? actor.tokenName : `${actor.tokenName}:${actor.portalUser}`;
}
