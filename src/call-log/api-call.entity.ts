import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { ErrorCode } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';

/** One answered call of the partner port (D38). */
@Entity({ name: 'api_calls' })
export class ApiCallEntity {
  /** The request id. */
  @PrimaryColumn({ name: 'request_id', type: 'text' })
  id!: string;

  @Column({ name: 'client_request_id', type: 'text', nullable: true })
  clientRequestId!: string | null;

  @Column({ name: 'key_id', type: 'text', nullable: true })
  keyId!: string | null;

  @Column({ name: 'partner_id', type: 'text', nullable: true })
  partnerId!: string | null;

  @Column({ type: 'text', nullable: true })
  mode!: Mode | null;

  @Column({ type: 'text' })
  method!: string;

  /** The pattern; null when no route was reached. */
  @Column({ type: 'text', nullable: true })
  route!: string | null;

  @Column({ type: 'text' })
  path!: string;

  @Column({ type: 'smallint' })
  status!: number;

  @Column({ name: 'error_code', type: 'text', nullable: true })
  errorCode!: ErrorCode | null;

  @Column({ name: 'latency_ms', type: 'real' })
  latencyMs!: number;

  @Column({ name: 'remote_address', type: 'text' })
  remoteAddress!: string;

  /** The first call's request id when this one was answered from its stored response (D8). */
  @Column({ name: 'replay_of', type: 'text', nullable: true })
  replayOf!: string | null;

  /** Set on a row that stands for so many refused calls, of which it shows the last (D45). */
  @Column({ type: 'integer', nullable: true })
  suppressed!: number | null;

  /** When the answer ended. */
  @Column({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
