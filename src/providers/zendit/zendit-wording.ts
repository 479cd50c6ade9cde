import type { ProviderPackage } from '../esim-provider.js';
import { type ResponseObject, arrayOrEmptyAt, textOrNullAt } from '../http/index.js';

/** What an offer is told apart by beside its amounts: three of four are "unlimited", in tiers of speed. */
export interface OfferWording extends Pick<ProviderPackage, 'speedPolicy' | 'notes'> {
  /** `Faster`; null where there is one only. */
  readonly tier: string | null;
}

/** Sub-types that say where an offer is for, and not how good it is. */
const PLACE_OR_PRODUCT = /\b(e-?sims?|data|local|country|regional|global)\b/i;
const ABOUT_SPEED = /\d\s*[kmg]b(?:it)?(?:ps|\/s)|throttl|reduced|slow|speed|fair[ -]us/i;

/** What Zendit says of the offer in words: `subTypes`, `shortNotes` and `notes`. @throws ProviderResponseInvalid */
export function wordingOf(offer: ResponseObject, unlimited: boolean): OfferWording {
  const tier = unlimited ? tierOf(offer) : null;
  const [short, long] = [textOrNullAt(offer, 'shortNotes'), textOrNullAt(offer, 'notes')];
  const said = sentencesOf(short).concat(sentencesOf(long)).filter(isAboutSpeed);
  const policy = [...new Set(said)].join(' ');
  return {
    tier,
    speedPolicy: policy === '' ? tier : policy,
    notes: long ?? short,
  };
}

function tierOf(offer: ResponseObject): string | null {
  const tiers = arrayOrEmptyAt(offer, 'subTypes').filter(
    (each): each is string => typeof each === 'string' && each.trim() !== '' && !PLACE_OR_PRODUCT.test(each),
  );
  return tiers.length === 0 ? null : tiers.join(', ');
}

/** Ends of lines and of sentences; the point in `1.25 Mbps` is none. */
function sentencesOf(text: string | null): readonly string[] {
  return (text ?? '').split(/(?<=[.!;])\s+|[\r\n]+|<br\s*\/?>/i).map((sentence) => sentence.trim());
}

function isAboutSpeed(sentence: string): boolean {
  return ABOUT_SPEED.test(sentence);
}
