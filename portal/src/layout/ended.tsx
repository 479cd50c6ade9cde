import { returnAddress } from '../api/return-address.ts';

export type EndReason = 'ended' | 'changed' | 'code' | 'cookies' | 'signed-out' | 'unreachable' | 'busy';
type Props = {
  reason: EndReason;
  returnUrl: string | null;
  retry?: () => void;
};

const TEXTS: Record<Props['reason'], { title: string; text: string }> = {
  ended: { title: 'Your session has ended', text: 'It expired, or someone ended it. No data was lost.' },
  changed: {
    title: 'You signed in again in another tab',
    text: 'Your last action on this page was not carried out. Reload to continue in the new session.',
  },
  code: {
    title: 'This link no longer works',
    text: 'A portal link works once and expires after five minutes. Open a new one from your provider’s site.',
  },
  cookies: {
    title: 'Your browser blocks cookies',
    text: 'The portal needs one cookie for your session. Allow cookies for this site, then try again. Your link still works within its five minutes.',
  },
  'signed-out': {
    title: 'You are signed out',
    text: 'The portal has ended your session.',
  },
  busy: {
    title: 'The portal is unavailable right now',
    text: 'It is busy or under maintenance. Your link and your session still work. Try again in a moment.',
  },
  unreachable: { title: 'We could not reach the portal', text: 'Check your connection and try again.' },
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
        <p className="hint">Open the portal again from your provider’s site.</p>
      )}
    </main>
  );
}
