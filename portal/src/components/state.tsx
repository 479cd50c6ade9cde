import type { ReactNode } from 'react';
import { capitalized, words } from './format.ts';
import { Icon, type IconName } from './icon.tsx';

export type Tone = 'good' | 'off' | 'run' | 'warn' | 'bad';

/** Look of the states of orders, eSIMs, top-ups, plans, refunds, keys, endpoints and deliveries. */
const STATES: Readonly<Record<string, readonly [Tone, IconName]>> = {
  active: ['good', 'ok'],
  approved: ['good', 'ok'],
  completed: ['good', 'ok'],
  delivered: ['good', 'ok'],
  enabled: ['good', 'ok'],
  issued: ['good', 'ok'],
  canceled: ['off', 'off'],
  disabled: ['off', 'off'],
  discarded: ['off', 'off'],
  ended: ['off', 'off'],
  exhausted: ['off', 'off'],
  expired: ['off', 'off'],
  interrupted: ['off', 'off'],
  revoked: ['off', 'off'],
  unknown: ['off', 'off'],
  held: ['off', 'pause'],
  pending: ['off', 'clock'],
  queued: ['off', 'clock'],
  replaced: ['off', 'clock'],
  canceling: ['run', 'run'],
  processing: ['run', 'run'],
  sending: ['run', 'run'],
  depleted: ['warn', 'warn'],
  partially_issued: ['warn', 'warn'],
  retrying: ['warn', 'warn'],
  blocked: ['warn', 'pause'],
  suspended: ['warn', 'pause'],
  failed: ['bad', 'bad'],
  rejected: ['bad', 'bad'],
};

type BadgeProps = { tone: Tone; icon?: IconName; children: ReactNode };

const ICONS: Record<Tone, IconName> = { good: 'ok', off: 'off', run: 'run', warn: 'warn', bad: 'bad' };

/** A state as an icon and a word. Only states that need somebody have a ground. */
export function Badge({ tone, icon = ICONS[tone], children }: BadgeProps) {
  return (
    <span className="badge" data-tone={tone}>
      <Icon name={icon} spin={tone === 'run'} />
      {children}
    </span>
  );
}

/** A state of the API by its code, spelled the same on every screen. */
export function State({ of }: { of: string }) {
  const [tone, icon] = STATES[of] ?? STATES['unknown']!;
  return (
    <Badge tone={tone} icon={icon}>
      {capitalized(words(of))}
    </Badge>
  );
}
