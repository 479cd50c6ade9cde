import { CopyButton } from './copy-button.tsx';

type Props = { what: string; secret: string; hint: string; onDone: () => void };

/** Shows what is shown once. `onDone` drops it: nothing else in the page holds it. */
export function SecretOnce({ what, secret, hint, onDone }: Props) {
  return (
    <div className="stack">
      <p>
        This is the only time that the {what} is shown. {hint}
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
