import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsInt, IsObject, Matches, Max, Min, NotEquals, ValidateIf, ValidateNested } from 'class-validator';
import { LINES_PATTERN } from '../../common/plain-text.js';
import { compose, MultiLineText, Optional, Reference } from '../../infra/http/index.js';
import type { PostingCommand } from '../manage-wallet.js';
import {
  BalanceResponse,
  toBalanceResponse,
  toTransactionResponse,
  TransactionResponse,
} from '../api/wallet.response.js';
import type { LedgerTransactionEntity, WalletEntity } from '../wallet.entity.js';

const MAX_AMOUNT = 1_000_000_000_000;
const MAX_NOTE = 500;

function Amount(min: number): PropertyDecorator {
  return compose(
    ApiProperty({
      type: 'integer',
      minimum: min,
      maximum: MAX_AMOUNT,
      example: 100_000,
      description: 'Minor units.',
    }),
    IsInt({ message: 'must be a whole number of minor units' }),
    Min(min, { message: `must be at least ${min}` }),
    Max(MAX_AMOUNT, { message: `must be at most ${MAX_AMOUNT}` }),
  );
}

function Currency(): PropertyDecorator {
  return compose(
    ApiProperty({ type: String, pattern: '^[A-Z]{3}$', example: 'USD', description: 'ISO 4217.' }),
    Matches(/^[A-Z]{3}$/, { message: 'must be three upper-case letters' }),
  );
}

function Required(money: new () => object): PropertyDecorator {
  return compose(
    ApiProperty({ type: money }),
    IsObject({ message: 'must be an object' }),
    ValidateNested(),
    Type(() => money),
  );
}

/** An incoming amount. */
export class DepositMoneyDto {
  @Amount(1)
  amount!: number;

  @Currency()
  currency!: string;
}

/** The amount of a correction: signed, never 0. */
export class AdjustmentMoneyDto {
  @Amount(-MAX_AMOUNT)
  @NotEquals(0, { message: 'must not be 0' })
  amount!: number;

  @Currency()
  currency!: string;
}

class PostingDto {
  @ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
  })
  @Optional()
  @MultiLineText(MAX_NOTE)
  note?: string | null;
}

/** The portal team's own id of a posting. */
function PostingReference(example: string): PropertyDecorator {
  return compose(
    ApiProperty({
      type: String,
      pattern: '^[\\x20-\\x7e]{1,64}$',
      example,
      description: "Unique among the partner's deposits and adjustments, forever.",
    }),
    Reference(),
  );
}

export class DepositDto extends PostingDto {
  @PostingReference('invoice-2026-118')
  reference!: string;

  @Required(DepositMoneyDto)
  amount!: DepositMoneyDto;
}

export class AdjustmentDto extends PostingDto {
  @PostingReference('correction-2026-7')
  reference!: string;

  @Required(AdjustmentMoneyDto)
  amount!: AdjustmentMoneyDto;
}

export class UpdateWalletDto {
  @Currency()
  currency!: string;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    minimum: 0,
    maximum: MAX_AMOUNT,
    description: 'The balance is low if the available amount is below this, in minor units; null: never.',
  })
  // Not @Optional(), which would treat an absent field as null.
  @ValidateIf((_, value) => value !== null)
  @IsInt({ message: 'must be a whole number of minor units, or null' })
  @Min(0, { message: 'must not be negative' })
  @Max(MAX_AMOUNT, { message: `must be at most ${MAX_AMOUNT}` })
  low_balance_amount!: number | null;
}

export function toPosting(partnerId: string, body: DepositDto | AdjustmentDto): PostingCommand {
  const { amount, currency } = body.amount;
  return { partnerId, money: { amount, currency }, reference: body.reference, note: body.note ?? null };
}

export class WalletResponse extends BalanceResponse {
  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Minor units; null: the balance is never low.',
  })
  low_balance_amount!: number | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'Since when the balance has been low.',
  })
  low_since!: string | null;
}

/** The partner's view of a transaction, plus the portal team's note. */
export class LedgerTransactionResponse extends TransactionResponse {
  @ApiProperty({ type: String, nullable: true })
  note!: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    example: 'portal:user-17',
    description: 'The author of a deposit or adjustment.',
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
