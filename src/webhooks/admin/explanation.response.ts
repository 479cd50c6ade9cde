import { ApiProperty } from '@nestjs/swagger';
import type { Explanation } from '../explain.js';
import { type Cause, CAUSE_OWNERS, CAUSES, type CauseOwner } from '../failure-causes.js';

export class ExplanationResponse {
  @ApiProperty({ enum: CAUSES })
  cause!: Cause;

  @ApiProperty({ enum: CAUSE_OWNERS, description: 'Who can fix it; `you` is the partner.' })
  owner!: CauseOwner;

  @ApiProperty({ type: String, example: "Your server's TLS certificate has expired." })
  summary!: string;

  @ApiProperty({ type: String, example: 'Renew the certificate, and automate its renewal.' })
  cure!: string;

  @ApiProperty({ type: [String], description: 'Facts from the delivery log.' })
  evidence!: readonly string[];

  @ApiProperty({ type: String, description: 'What happens next.' })
  next!: string;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'When it happens; null if that depends on you.',
  })
  next_at!: string | null;
}

export function toExplanationResponse(explanation: Explanation): ExplanationResponse {
  const { cause, owner, summary, cure, evidence, next, nextAt } = explanation;
  return { cause, owner, summary, cure, evidence, next, next_at: nextAt?.toISOString() ?? null };
}
