import { ApiProperty } from '@nestjs/swagger';
import { CHANGE_KINDS, type ChangeKind, type LoggedChange } from '../catalog-changes.repository.js';

export class CatalogChangeResponse {
  @ApiProperty({ enum: CHANGE_KINDS, description: '`withdrawn`: the package is no longer on sale.' })
  kind!: ChangeKind;

  @ApiProperty({ type: String, example: 'pkg_fr_1gb_7d' })
  package_id!: string;

  @ApiProperty({
    type: [String],
    example: ['price'],
    description:
      'Fields of the package that have changed besides `updated_at`. Empty for a new package. A new price list lists `price` and `retail_price` of every package.',
  })
  changed!: readonly string[];

  @ApiProperty({ type: String, format: 'date-time' })
  at!: string;
}

export function toCatalogChangeResponse(change: LoggedChange): CatalogChangeResponse {
  return {
    kind: change.kind,
    package_id: change.packageId,
    changed: change.changed,
    at: change.at.toISOString(),
  };
}
