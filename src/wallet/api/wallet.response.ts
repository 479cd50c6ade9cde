import { ApiProperty } from '@nestjs/swagger';
import { MoneyResponse } from '../../infra/http/index.js';

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

export const TRANSACTION_TYPES = ['charge', 'refund', 'deposit', 'adjustment'] as const;

export class TransactionResponse {
  @ApiProperty({ type: String, example: 'txn_01KAEXAMPLE000000000000000' })
  id!: string;

  @ApiProperty({ enum: TRANSACTION_TYPES })
  type!: (typeof TRANSACTION_TYPES)[number];

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
