import { ApiProperty } from '@nestjs/swagger';
import { InstallLinksResponse } from '../api/esim.dto.js';

/** Installation data of an eSIM, shown by one audited POST of the portal (D25). */
export class InstallDataResponse {
  @ApiProperty({ type: String, example: 'esim_01KAEXAMPLE0000000000000000' })
  esim_id!: string;

  @ApiProperty({ type: String, example: 'smdp.example.com' })
  smdp_address!: string;

  @ApiProperty({ type: String, example: 'MATCHING-ID' })
  matching_id!: string;

  @ApiProperty({ type: String, example: 'LPA:1$smdp.example.com$MATCHING-ID' })
  activation_code!: string;

  @ApiProperty({ type: String, nullable: true })
  confirmation_code!: string | null;

  @ApiProperty({ type: String, nullable: true })
  pin!: string | null;

  @ApiProperty({ type: String, nullable: true })
  puk!: string | null;

  @ApiProperty({ type: () => InstallLinksResponse })
  install!: InstallLinksResponse;

  @ApiProperty({ type: String, description: 'The QR code as an SVG document.', example: '<svg>...</svg>' })
  svg!: string;

  @ApiProperty({ type: String, description: 'The QR code as a Base64 PNG.', example: 'iVBORw0KGgo=' })
  png_base64!: string;
}
