import { ApiProperty } from '@nestjs/swagger';
import { IsInt, Matches, Max, Min } from 'class-validator';

/** Money of a request (D10): `{ "amount": 1250, "currency": "USD" }`. */
export class MoneyDto {
  @ApiProperty({
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000_000_000,
    example: 1250,
    description: 'Minor units.',
  })
  @IsInt({ message: 'must be a whole number of minor units' })
  @Min(0, { message: 'must not be negative' })
  @Max(1_000_000_000_000, { message: 'must be at most 1000000000000' })
  amount!: number;

  @ApiProperty({ type: String, pattern: '^[A-Z]{3}$', example: 'USD', description: 'ISO 4217.' })
  @Matches(/^[A-Z]{3}$/, { message: 'must be three upper-case letters' })
  currency!: string;
}
