import type { Tone } from './state.tsx';

type Props = {
  /** Used share of the whole, 0 to 1. */
  share: number;
  /** The same in words. */
  label: string;
  tone?: Tone;
  slim?: boolean;
};

/** A used share of a whole. */
export function Meter({ share, label, tone, slim = false }: Props) {
  return (
    <div className={slim ? 'meter slim' : 'meter'} role="img" aria-label={label} data-tone={tone}>
      <span style={{ width: `${Math.min(100, share * 100)}%` }} />
    </div>
  );
}
