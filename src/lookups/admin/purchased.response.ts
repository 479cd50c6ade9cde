import { ApiProperty } from '@nestjs/swagger';
import { EsimResponse } from '../../esims/index.js';
import { TopupResponse } from '../../topups/index.js';

/** Any partner's eSIM, without install data (D25). */
export class EsimOfPartnerResponse extends EsimResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;
}

/** Any partner's top-up. */
export class TopupOfPartnerResponse extends TopupResponse {
  @ApiProperty({ type: String, example: 'ptn_01KAEXAMPLE000000000000000' })
  partner_id!: string;

  @ApiProperty({
    type: String,
    example: 'req_01KAEXAMPLE000000000000000',
    description: 'The call that requested the top-up.',
  })
  accepted_request_id!: string;
}
