import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { ErrorCode } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';

/** One call of the partner port with its result (D38). */
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

  /** The route pattern; null when no route matched. */
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

  /** The first call's request id when this call returned its stored response (D8). */
  @Column({ name: 'replay_of', type: 'text', nullable: true })
  replayOf!: string | null;

  /** Set on a row that summarizes this many refused calls and shows the last of them (D45). */
  @Column({ type: 'integer', nullable: true })
  suppressed!: number | null;

  /** End of the response. */
  @Column({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
