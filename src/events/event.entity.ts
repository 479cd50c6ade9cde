import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { bigintColumn } from '../infra/database/index.js';
import type { EventType } from './event.js';

@Entity({ name: 'events' })
export class EventEntity {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ name: 'partner_id', type: 'text' })
  partnerId!: string;

  @Column({ type: 'text' })
  mode!: Mode;

  @Column({ type: 'text' })
  type!: EventType;

  /** The envelope's bytes: created once, sent and listed unchanged (D28). */
  @Column({ type: 'text' })
  body!: string;

  /** Feed position, assigned after the commit (D39). */
  @Column({ type: 'bigint', nullable: true, transformer: bigintColumn })
  position!: number | null;

  /** Trace of the event's cause (D53), to which its attempts belong. Null when untraced. */
  @Column({ type: 'text', nullable: true })
  traceparent!: string | null;

  @Column({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
