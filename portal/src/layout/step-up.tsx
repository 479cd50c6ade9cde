import { useSession } from '../api/session.ts';
import { Dialog } from '../components/dialog.tsx';

/** The portal team's return address, with the reason. Null when the session has no valid one. */
export function returnAddress(returnUrl: string | null | undefined, reason?: 'step_up'): string | null {
  if (!returnUrl || !URL.canParse(returnUrl)) return null;
  const address = new URL(returnUrl);
  if (address.protocol !== 'https:' && address.protocol !== 'http:') return null;
  if (reason) address.searchParams.set('reason', reason);
  return address.href;
}

/** Explains that the action requires a sign-in within the last 15 minutes, and links to a new sign-in. */
export function StepUp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const address = returnAddress(useSession().return_url, 'step_up');
  return (
    <Dialog open={open} onClose={onClose} title="Sign in again to continue">
      <p>
        This action needs a sign-in within the last 15 minutes. Nothing was changed. Sign in again and repeat
        the action.
      </p>
      <div className="actions">
        <button type="button" className="button" onClick={onClose}>
          Not now
        </button>
        {address ? (
          <a className="button primary" href={address}>
            Sign in again
          </a>
        ) : (
          <p className="hint">Open the portal again from your provider’s site.</p>
        )}
      </div>
    </Dialog>
  );
}
