import type { Package } from '../../api/types.ts';
import { bytes, counted, words } from '../../components/format.ts';
import { placeName } from '../../components/package-name.tsx';

export const PLANS: Record<Package['plan']['kind'], string> = {
  total: 'One allowance',
  daily: 'Day pass',
  unlimited: 'Unlimited',
};

/** The speed and its limit, or null if the wholesaler does not say. */
export function fairUse({ fair_use: use }: Package): string | null {
  if (!use || use.full_speed_bytes === null) return null;
  const amount = `${bytes(use.full_speed_bytes)}${use.per === 'day' ? ' a day' : ''}`;
  const then = {
    slower: use.kbps === null ? 'slower' : speed(use.kbps),
    stopped: 'it stops',
    unknown: 'not stated',
  }[use.then];
  const resets = use.per === 'day' && use.resets === 'midnight' ? ' Resets at midnight.' : '';
  return `Full speed to ${amount}, then ${then}.${resets}`;
}

const speed = (kbps: number): string => (kbps >= 1_000 ? `${kbps / 1_000} Mbps` : `${kbps} kbps`);

/** Where the traffic reaches the internet, or null if the wholesaler does not say. */
export const exitName = ({ exit_countries: exits }: Package): string | null =>
  exits && exits.length > 0 ? exits.map(placeName).join(', ') : null;

/** The effect of a top-up on an eSIM of the package. */
export function topupName({ topup, topup_supported: supported }: Package): string {
  if (!supported || topup.kinds.length === 0) return supported ? 'Allowed' : 'No top-ups';
  const kinds = topup.kinds.map((kind) => (kind === 'plan' ? 'a plan' : kind)).join(' and ');
  return topup.behavior === 'queues' ? `Queues ${kinds}` : `Adds ${kinds}`;
}

/** The calls and texts of a package, such as `100 minutes, 50 SMS`. Empty if it has none. */
export const callsAndTexts = ({ voice_minutes: minutes, sms_count: texts }: Package): string =>
  [minutes ? counted(minutes, 'minute') : '', texts ? `${texts} SMS` : ''].filter(Boolean).join(', ');

/** Plan, networks, generation and hotspot in a line. */
export function network(item: Package): string {
  const names = [...new Set(item.networks.map(({ operator }) => operator))];
  return [
    PLANS[item.plan.kind],
    item.coverage.length > 1 ? `${item.coverage.length} countries` : names.slice(0, 2).join(', '),
    item.max_generation,
    item.hotspot ? 'hotspot' : '',
    item.variant,
  ]
    .filter(Boolean)
    .map((part) => words(String(part)))
    .join(' · ');
}
