import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { bigintColumn } from '../infra/database/index.js';
import { type PackageTerms, UNSTATED_TERMS } from './package-terms.js';
import type { ActivationPolicy, PackageKind, PackageNetwork, PackageType, Region } from './package.js';

@Entity({ name: 'packages' })
export class PackageEntity {
  @PrimaryColumn({ type: 'text' })
  mode!: Mode;

  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'text' })
  title!: string;

  @Column({ type: 'text' })
  type!: PackageType;

  @Column({ type: 'text', nullable: true })
  region!: Region | null;

  @Column({ type: 'text', array: true })
  coverage!: string[];

  @Column({ type: 'text' })
  kind!: PackageKind;

  @Column({ name: 'data_bytes', type: 'bigint', nullable: true, transformer: bigintColumn })
  dataBytes!: number | null;

  @Column({ type: 'boolean' })
  unlimited!: boolean;

  @Column({ name: 'voice_minutes', type: 'int', nullable: true })
  voiceMinutes!: number | null;

  @Column({ name: 'sms_count', type: 'int', nullable: true })
  smsCount!: number | null;

  @Column({ name: 'validity_days', type: 'int' })
  validityDays!: number;

  @Column({ name: 'activation_policy', type: 'text' })
  activationPolicy!: ActivationPolicy;

  @Column({ name: 'topup_supported', type: 'boolean' })
  topupSupported!: boolean;

  @Column({ type: 'jsonb' })
  networks!: PackageNetwork[];

  @Column({ name: 'speed_policy', type: 'text', nullable: true })
  speedPolicy!: string | null;

  @Column({ type: 'text', nullable: true })
  notes!: string | null;

  /** A row may be older than a field. */
  @Column({
    type: 'jsonb',
    transformer: {
      from: (stored: Partial<PackageTerms>): PackageTerms => ({ ...UNSTATED_TERMS, ...stored }),
      to: (terms: PackageTerms) => terms,
    },
  })
  terms!: PackageTerms;

  @Column({ name: 'price_amount', type: 'bigint', transformer: bigintColumn })
  priceAmount!: number;

  @Column({ type: 'text' })
  currency!: string;

  /** Our cost in micros (millionths of the currency's unit); never shown to partners. */
  @Column({ name: 'cost_micros', type: 'bigint', nullable: true, transformer: bigintColumn })
  costMicros!: number | null;

  @Column({ name: 'retail_amount', type: 'bigint', nullable: true, transformer: bigintColumn })
  retailAmount!: number | null;

  @Column({ type: 'boolean' })
  available!: boolean;

  @Column({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;

  @Column({ name: 'updated_at', type: 'timestamptz' })
  updatedAt!: Date;
}
