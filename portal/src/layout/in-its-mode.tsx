import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Mode } from '../api/types.ts';
import { MODE_NAMES, useMode } from './use-mode.ts';

type Props = {
  /** What it is, such as `order`. */
  what: string;
  /** The object's own mode; null: it has none, and is shown in both. */
  mode: Mode | null;
  /** Stands above the words when the object is not shown, for a page that names the object inside of `children`. */
  heading?: ReactNode;
  children: ReactNode;
};

/** Shows an object in its own mode only: under the banner of Live, one of Sandbox would look like real money. */
export function InItsMode({ what, mode, heading, children }: Props) {
  const shown = useMode();
  if (mode === null || mode === shown) return children;
  return (
    <>
      {heading}
      <div className="note wait">
        <p>
          This {what} is of {MODE_NAMES[mode]}, and {MODE_NAMES[shown]} is what you look at.
        </p>
        <Link to="." search={(last) => ({ ...last, mode })} className="button small">
          Show it in {MODE_NAMES[mode]}
        </Link>
      </div>
    </>
  );
}
