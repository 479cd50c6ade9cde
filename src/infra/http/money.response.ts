import { ApiProperty } from '@nestjs/swagger';

/** Money of an answer (D10). */
export class MoneyResponse {
  @ApiProperty({ type: 'integer', example: 450, description: 'Minor units.' })
  amount!: number;

  @ApiProperty({ type: String, example: 'USD', description: 'ISO 4217.' })
  currency!: string;
}
