import { ApiProperty } from '@nestjs/swagger';
import type { Explanation } from '../explain.js';
import { type Cause, CAUSE_OWNERS, CAUSES, type CauseOwner } from '../failure-causes.js';

export class ExplanationResponse {
  @ApiProperty({ enum: CAUSES })
  cause!: Cause;

  @ApiProperty({ enum: CAUSE_OWNERS, description: 'Whose it is to mend; `you` is the partner.' })
  owner!: CauseOwner;

  @ApiProperty({ type: String, example: "Your receiver's TLS certificate has expired." })
  summary!: string;

  @ApiProperty({ type: String, example: 'Renew the certificate, and have it renewed by itself.' })
  cure!: string;

  @ApiProperty({ type: [String], description: 'Facts of the log.' })
  evidence!: readonly string[];

  @ApiProperty({ type: String, description: 'What happens next.' })
  next!: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When that is.' })
  next_at!: string | null;
}

export function toExplanationResponse(explanation: Explanation): ExplanationResponse {
  const { cause, owner, summary, cure, evidence, next, nextAt } = explanation;
  return { cause, owner, summary, cure, evidence, next, next_at: nextAt?.toISOString() ?? null };
}
