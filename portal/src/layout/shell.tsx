import { Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { onStepUp, send } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { CommandPalette } from './command-palette.tsx';
import { Toasts } from '../components/toasts.tsx';
import { ModeSwitch } from './mode-switch.tsx';
import { Navigation, SCREENS } from './navigation.tsx';
import { StepUp } from './step-up.tsx';
import { useMode } from './use-mode.ts';

/** The frame around every screen. */
export function Shell({ onSignedOut }: { onSignedOut: () => void }) {
  const session = useSession();
  const [menu, setMenu] = useState(false);
  const [stepUp, setStepUp] = useState(false);
  const { pathname } = useLocation();
  const main = useRef<HTMLElement | null>(null);
  const shownBefore = useRef(pathname);
  const name = session.branding?.name ?? 'Partner portal';

  useEffect(() => onStepUp(() => setStepUp(true)), []);
  useEffect(() => {
    const screen = SCREENS.find(({ to }) => pathname.startsWith(to));
    document.title = screen ? `${screen.name} · ${name}` : name;
    // Move the focus to a new screen, so that the keyboard does not stay on the old one.
    if (shownBefore.current !== pathname) main.current?.focus();
    shownBefore.current = pathname;
  }, [pathname, name]);

  const signOut = async () => {
    try {
      await send('DELETE', 'session');
    } finally {
      onSignedOut();
    }
  };

  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <header>
        <div className="top">
          <div className="brand">
            {session.branding?.logo_url && (
              <img src={session.branding.logo_url} alt="" width="28" height="28" />
            )}
            <span>{name}</span>
          </div>
          <ModeSwitch />
          <CommandPalette />
          <div className="who">
            <span>
              {session.partner.name} · {session.actor.name ?? session.actor.id}
            </span>
            <button type="button" className="button quiet" onClick={() => void signOut()}>
              Sign out
            </button>
          </div>
          <button
            type="button"
            className="button menu-button"
            aria-expanded={menu}
            aria-controls="navigation"
            onClick={() => setMenu(!menu)}
          >
            Menu
          </button>
        </div>
        <ModeBanner />
      </header>
      <div id="navigation" className={menu ? 'side open' : 'side'}>
        <Navigation onFollow={() => setMenu(false)} />
      </div>
      <main id="content" ref={main} tabIndex={-1}>
        <Outlet />
      </main>
      <Toasts />
      <StepUp open={stepUp} onClose={() => setStepUp(false)} />
    </div>
  );
}

/** Live is real money and must never look like Sandbox. */
function ModeBanner() {
  const mode = useMode();
  const navigate = useNavigate();
  const { modes } = useSession();
  return (
    <p className={`mode-banner ${mode}`}>
      {mode === 'sandbox' ? 'Sandbox: mock data, no charges.' : 'Live: real eSIMs, paid from your balance.'}{' '}
      {mode === 'live' && modes.includes('sandbox') && (
        <button
          type="button"
          className="link"
          onClick={() => void navigate({ to: '/developers/api-keys', search: { mode: 'sandbox' } })}
        >
          Try Sandbox without charges
        </button>
      )}
    </p>
  );
}
