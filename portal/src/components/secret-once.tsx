import type { ReactNode } from 'react';
import { CopyButton } from './copy-button.tsx';

type LostProps = { what: string; children: ReactNode; onDone: () => void };

/** Shown in place of a once-only secret whose response was lost. `children` say what to do now. */
export function SecretLost({ what, children, onDone }: LostProps) {
  return (
    <div className="stack">
      <div className="note wait">
        <p>
          The {what} was created, but the response that carried it was lost. We show a {what} only once.
        </p>
        <p>{children}</p>
      </div>
      <div className="actions">
        <button type="button" className="button primary" onClick={onDone}>
          Done
        </button>
      </div>
    </div>
  );
}

type Props = { what: string; secret: string; hint: string; onDone: () => void };

/** Shows a once-only secret. `onDone` drops it: nothing else on the page holds it. */
export function SecretOnce({ what, secret, hint, onDone }: Props) {
  return (
    <div className="stack">
      <p>
        Copy the {what} now. We will not show it again. {hint}
      </p>
      <div className="secret">
        <code>{secret}</code>
        <CopyButton text={secret} />
      </div>
      <div className="actions">
        <button type="button" className="button primary" onClick={onDone}>
          Done
        </button>
      </div>
    </div>
  );
}
