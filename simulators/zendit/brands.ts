import type { Offer } from './contract.ts';

interface Brand {
  readonly brand: string;
  readonly brandName: string;
}

/** The distinct brands of the offers. */
export function brandsOf(offers: readonly Offer[]): readonly Brand[] {
  return [...new Map(offers.map(({ brand, brandName }) => [brand, { brand, brandName }])).values()];
}

/** The body of `GET /brands/{brand}`. */
export function brandBody({ brand, brandName }: Brand): Record<string, unknown> {
  return {
    brand,
    brandName,
    brandBigImage: '',
    brandColor: '#004488',
    brandGiftImage: '',
    brandInfoPdf: '',
    brandLogo: '',
    brandLogoExtension: 'png',
    description: 'Data plans for travelers',
    inputMasks: [],
    redemptionInstructions: [],
    requiredFieldsLabels: [],
  };
}
