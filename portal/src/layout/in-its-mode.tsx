import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Mode } from '../api/types.ts';
import { Callout } from '../components/callout.tsx';
import { MODE_NAMES, useMode } from './use-mode.ts';

type Props = {
  /** The kind of object, such as `order`. */
  what: string;
  /** The object's own mode; null for an object without a mode, which is shown in both. */
  mode: Mode | null;
  children: ReactNode;
};

/** Whether an object belongs to the mode that is shown. */
export function useIsShown(mode: Mode | null | undefined): boolean {
  const shown = useMode();
  return mode === null || mode === undefined || mode === shown;
}

/** Shows an object in its own mode only: under the Live banner, a Sandbox object would look like real money. */
export function InItsMode({ what, mode, children }: Props) {
  const shown = useMode();
  if (mode === null || mode === shown) return children;
  return (
    <Callout
      tone="off"
      title={`This is a ${MODE_NAMES[mode]} ${what}`}
      actions={
        <Link to="." search={(last) => ({ ...last, mode })} className="button small">
          View it in {MODE_NAMES[mode]}
        </Link>
      }
    >
      <p>You are viewing {MODE_NAMES[shown]}.</p>
    </Callout>
  );
}
