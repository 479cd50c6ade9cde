import { type ProviderEsimStanding, ProviderOutcomeUnknown } from '../esim-provider.js';
import { PartlySilent, type WithoutWord } from './partial-silence.js';

/** What a look at one eSIM gave. */
export type SeenStanding = Pick<ProviderEsimStanding, 'providerEsimId'> & {
  readonly standing: ProviderEsimStanding['standing'] | WithoutWord;
};

/**
 * @throws PartlySilent when some eSIMs were answered and others not: one of those may be in use
 * @throws ProviderOutcomeUnknown when there is no word on any
 */
export function toStandings(seen: readonly SeenStanding[]): readonly ProviderEsimStanding[] {
  const count = (wanted: WithoutWord): number => seen.filter(({ standing }) => standing === wanted).length;
  if (seen.length > 0 && count('silent') + count('unreadable') === seen.length)
    throw new ProviderOutcomeUnknown();
  if (count('silent') > 0) throw new PartlySilent();
  return seen.map(({ providerEsimId, standing }) => ({
    providerEsimId,
    standing: standing === 'silent' || standing === 'unreadable' ? 'unknown' : standing,
  }));
}
