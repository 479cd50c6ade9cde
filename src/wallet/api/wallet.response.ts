import { ApiProperty } from '@nestjs/swagger';
import { MoneyResponse } from '../../infra/http/index.js';
import {
  type LedgerTransactionEntity,
  TRANSACTION_TYPES,
  type TransactionType,
  type WalletEntity,
} from '../wallet.entity.js';

export class BalanceResponse {
  @ApiProperty({ type: String, example: 'USD' })
  currency!: string;

  @ApiProperty({ type: MoneyResponse })
  posted!: MoneyResponse;

  @ApiProperty({ type: MoneyResponse })
  held!: MoneyResponse;

  @ApiProperty({ type: MoneyResponse })
  available!: MoneyResponse;
}

export class TransactionResponse {
  @ApiProperty({ type: String, example: 'txn_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ enum: TRANSACTION_TYPES })
  type!: TransactionType;

  @ApiProperty({ type: MoneyResponse, description: 'Signed.', example: { amount: -450, currency: 'USD' } })
  amount!: MoneyResponse;

  @ApiProperty({ type: MoneyResponse })
  balance_after!: MoneyResponse;

  @ApiProperty({ type: String, nullable: true, example: 'ord_01KAEXAMPLE000000000000000' })
  order_id!: string | null;

  @ApiProperty({ type: String, nullable: true })
  topup_id!: string | null;

  @ApiProperty({ type: String, nullable: true })
  reference!: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at!: string;
}

export function toBalanceResponse({
  currency,
  posted,
  held,
}: Pick<WalletEntity, 'currency' | 'posted' | 'held'>): BalanceResponse {
  return {
    currency,
    posted: { amount: posted, currency },
    held: { amount: held, currency },
    available: { amount: posted - held, currency },
  };
}

export function toTransactionResponse(transaction: LedgerTransactionEntity): TransactionResponse {
  const { currency } = transaction;
  return {
    id: transaction.id,
    type: transaction.type,
    amount: { amount: transaction.amount, currency },
    balance_after: { amount: transaction.balanceAfter, currency },
    order_id: transaction.orderId,
    topup_id: transaction.topupId,
    reference: transaction.reference,
    created_at: transaction.createdAt.toISOString(),
  };
}
