import { ApiProperty } from '@nestjs/swagger';

/** Why something that was accepted did not come about (D22). */
export class FailureResponse {
  @ApiProperty({ type: String, example: 'package_unavailable' })
  code!: string;

  @ApiProperty({ type: String, example: 'The package is out of stock.' })
  reason!: string;
}

/** The failure of a row, or null when it has none. */
export function toFailureResponse(code: string | null, reason: string | null): FailureResponse | null {
  return code === null ? null : { code, reason: reason ?? '' };
}
