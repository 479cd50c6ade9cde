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

  /** Everything that the partner has, what is held included. */
  @Column({ type: 'bigint', transformer: bigintColumn })
  posted!: number;

  @Column({ type: 'bigint', transformer: bigintColumn })
  held!: number;

  /** Below this available amount the wallet counts as low; null: never. */
  @Column({ name: 'low_balance_amount', type: 'bigint', nullable: true, transformer: bigintColumn })
  lowBalanceAmount!: number | null;

  @Column({ name: 'low_since', type: 'timestamptz', nullable: true })
  lowSince!: Date | null;
}
