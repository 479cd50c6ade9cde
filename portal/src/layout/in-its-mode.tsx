import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Mode } from '../api/types.ts';
import { MODE_NAMES, useMode } from './use-mode.ts';

type Props = {
  /** The kind of object, such as `order`. */
  what: string;
  /** The object's own mode; null for an object without a mode, which is shown in both. */
  mode: Mode | null;
  /** Shown above the notice when the object is hidden, for pages whose heading is part of `children`. */
  heading?: ReactNode;
  children: ReactNode;
};

/** Shows an object in its own mode only: under the Live banner, a Sandbox object would look like real money. */
export function InItsMode({ what, mode, heading, children }: Props) {
  const shown = useMode();
  if (mode === null || mode === shown) return children;
  return (
    <>
      {heading}
      <div className="note wait">
        <p>
          This is a {MODE_NAMES[mode]} {what}. You are viewing {MODE_NAMES[shown]}.
        </p>
        <Link to="." search={(last) => ({ ...last, mode })} className="button small">
          View it in {MODE_NAMES[mode]}
        </Link>
      </div>
    </>
  );
}
