import { ApiProperty } from '@nestjs/swagger';
import {
  BalanceResponse,
  toBalanceResponse,
  toTransactionResponse,
  TransactionResponse,
} from '../api/wallet.response.js';
import type { LedgerTransactionEntity } from '../ledger-transaction.entity.js';
import type { WalletEntity } from '../wallet.entity.js';

export class WalletResponse extends BalanceResponse {
  @ApiProperty({ type: 'integer', nullable: true, description: 'Minor units; null: never low.' })
  low_balance_amount!: number | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'Since when it is low.' })
  low_since!: string | null;
}

/** The partner's view of a transaction, with what the portal team wrote to it. */
export class LedgerTransactionResponse extends TransactionResponse {
  @ApiProperty({ type: String, nullable: true })
  note!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'portal:user-17',
    description: 'Who made a deposit or an adjustment.',
  })
  actor!: string | null;
}

export function toWalletResponse(wallet: WalletEntity): WalletResponse {
  return {
    ...toBalanceResponse(wallet),
    low_balance_amount: wallet.lowBalanceAmount,
    low_since: wallet.lowSince?.toISOString() ?? null,
  };
}

export function toLedgerTransactionResponse(transaction: LedgerTransactionEntity): LedgerTransactionResponse {
  return { ...toTransactionResponse(transaction), note: transaction.note, actor: transaction.actor };
}
