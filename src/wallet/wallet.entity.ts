import { Column, Entity, PrimaryColumn } from 'typeorm';
import { bigintColumn } from '../infra/database/index.js';

/** A partner's prepaid money in one currency, Live only (D27). Amounts in minor units. */
@Entity({ name: 'wallets' })
export class WalletEntity {
  @PrimaryColumn({ type: 'bigint' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  currency!: string;

  /** The total, including held amounts. */
  @Column({ type: 'bigint', transformer: bigintColumn })
  posted!: number;

  @Column({ type: 'bigint', transformer: bigintColumn })
  held!: number;

  /** Available amount below which the wallet counts as low; null: never. */
  @Column({ name: 'low_balance_amount', type: 'bigint', nullable: true, transformer: bigintColumn })
  lowBalanceAmount!: number | null;

  @Column({ name: 'low_since', type: 'timestamptz', nullable: true })
  lowSince!: Date | null;
}

export const TRANSACTION_TYPES = ['charge', 'refund', 'deposit', 'adjustment'] as const;
export type TransactionType = (typeof TRANSACTION_TYPES)[number];

/** One movement of a wallet; never changed or deleted. */
@Entity({ name: 'ledger_transactions' })
export class LedgerTransactionEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  currency!: string;

  @Column({ type: 'text' })
  type!: TransactionType;

  /** Signed, from the partner's side. */
  @Column({ type: 'bigint', transformer: bigintColumn })
  amount!: number;

  @Column({ name: 'balance_after', type: 'bigint', transformer: bigintColumn })
  balanceAfter!: number;

  @Column({ name: 'order_id', type: 'text', nullable: true })
  orderId!: string | null;

  @Column({ name: 'topup_id', type: 'text', nullable: true })
  topupId!: string | null;

  @Column({ type: 'text', nullable: true })
  reference!: string | null;

  /** The portal team's reason; never shown to the partner. */
  @Column({ type: 'text', nullable: true })
  note!: string | null;

  /** Member of the portal team; null for a movement caused by an order or top-up. */
  @Column({ type: 'text', nullable: true })
  actor!: string | null;

  @Column({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}

export const WALLET_ENTITIES = [WalletEntity, LedgerTransactionEntity];
