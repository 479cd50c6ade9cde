import { useBlocker } from '@tanstack/react-router';
import { useRef, type ReactNode } from 'react';
import { Callout } from './callout.tsx';
import { CopyButton } from './copy-button.tsx';
import { Dialog } from './dialog.tsx';

type LostProps = { what: string; title: string; children: ReactNode; onDone: () => void };

const done = (onDone: () => void) => (
  <button type="button" className="button primary" onClick={onDone}>
    Done
  </button>
);

/** Shown in place of a once-only secret whose response was lost. `children` say what to do now. */
export function SecretLost({ what, title, children, onDone }: LostProps) {
  return (
    <Dialog onClose={onDone} title={title} foot={done(onDone)}>
      <Callout tone="warn">
        <p>
          The {what} was created, but the response that carried it was lost. We show a {what} only once.
        </p>
        <p>{children}</p>
      </Callout>
    </Dialog>
  );
}

type Props = {
  what: string;
  title: string;
  /** Names the object that the secret belongs to. */
  of: string;
  secret: string;
  hint: ReactNode;
  onDone: () => void;
};

/**
 * Shows a once-only secret. Leaving the page needs a confirmation. `onDone` drops the secret: nothing else on the page
 * holds it.
 */
export function SecretOnce({ what, title, of, secret, hint, onDone }: Props) {
  const finished = useRef(false);
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: () => !finished.current,
    enableBeforeUnload: () => !finished.current,
    withResolver: true,
  });
  const finish = () => {
    finished.current = true;
    onDone();
  };
  return (
    <Dialog onClose={finish} title={title} dismissible={false} foot={done(finish)}>
      {status === 'blocked' && (
        <Callout
          tone="warn"
          role="alert"
          title={`Leave without the ${what}?`}
          actions={
            <>
              <button type="button" className="button small" onClick={reset}>
                Stay
              </button>
              <button type="button" className="button small danger" onClick={proceed}>
                Leave
              </button>
            </>
          }
        >
          <p>We cannot show it again.</p>
        </Callout>
      )}
      <p>
        Copy the {what} now. We will not show it again. {hint}
      </p>
      <div className="code secret">
        <div className="code-head">
          <span>{of}</span>
          <CopyButton text={secret} label="Copy" shape="button" />
        </div>
        <pre tabIndex={0} role="region" aria-label={what}>
          {secret}
        </pre>
      </div>
    </Dialog>
  );
}
