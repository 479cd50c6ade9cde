import { returnAddress } from './step-up.tsx';

export type EndReason = 'ended' | 'changed' | 'code' | 'signed-out' | 'unreachable' | 'busy';
type Props = {
  reason: EndReason;
  returnUrl: string | null;
  retry?: () => void;
};

const TEXTS: Record<Props['reason'], { title: string; text: string }> = {
  ended: { title: 'Your session has ended', text: 'It ran out, or somebody ended it. Nothing is lost.' },
  changed: {
    title: 'This browser is in another session now',
    text: 'Another link to the portal was opened in this browser. What you did here last was not carried out.',
  },
  code: {
    title: 'This link was used already',
    text: 'A link to the portal opens one session and lives five minutes. Ask for a new one where you came from.',
  },
  'signed-out': {
    title: 'You have signed out',
    text: 'This browser has left the session, and the portal has ended it.',
  },
  busy: {
    title: 'The portal cannot answer right now',
    text: 'It is busy, or being worked on. Your link and your session are as they were: try again in a moment.',
  },
  unreachable: { title: 'The portal cannot be reached', text: 'Check your connection and try again.' },
};

/** Replaces the portal when there is no session. */
export function Ended({ reason, returnUrl, retry }: Props) {
  const { title, text } = TEXTS[reason];
  const address = returnAddress(returnUrl);
  return (
    <main className="ended">
      <h1>{title}</h1>
      <p>{text}</p>
      {retry && (
        <button type="button" className="button primary" onClick={retry}>
          Try again
        </button>
      )}
      {reason === 'changed' && (
        <a className="button primary" href="/">
          Reload
        </a>
      )}
      {address && (
        <a className="button primary" href={address}>
          Sign in again
        </a>
      )}
      {reason !== 'changed' && !address && !retry && (
        <p className="hint">Open the portal anew from your provider’s site.</p>
      )}
    </main>
  );
}
