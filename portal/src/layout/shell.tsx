import { Link, Outlet, useLocation } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { send } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { Icon } from '../components/icon.tsx';
import { Toasts } from '../components/toasts.tsx';
import { CommandPalette } from './command-palette.tsx';
import { ModeSwitch } from './mode-switch.tsx';
import { Navigation, SCREENS } from './navigation.tsx';
import { Screen } from './screen.tsx';
import { UserMenu } from './user-menu.tsx';

/** The frame around every screen: a column at the side, or one row at the top of a narrow window. */
export function Shell({ onSignedOut }: { onSignedOut: () => void }) {
  const { branding, scopes } = useSession();
  const { pathname } = useLocation();
  const main = useRef<HTMLElement | null>(null);
  const menu = useRef<HTMLDivElement | null>(null);
  const shownBefore = useRef(pathname);
  const name = branding?.name ?? 'Partner portal';
  const denied = SCREENS.find(
    ({ to, scope }) => (pathname === to || pathname.startsWith(`${to}/`)) && !scopes.includes(scope),
  )?.name;

  useEffect(() => {
    // Move the focus to a new screen, so that the keyboard does not stay on the old one.
    if (shownBefore.current !== pathname) main.current?.focus();
    shownBefore.current = pathname;
  }, [pathname]);

  const closeMenu = () => {
    if (menu.current?.matches(':popover-open')) menu.current.hidePopover();
  };
  const signOut = async () => {
    try {
      await send('DELETE', 'session');
    } finally {
      onSignedOut();
    }
  };

  return (
    <div className="app">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <Hatch />
      <div className="rail">
        <header className="top">
          <Link to="/" className="brand" aria-label={`${name}, home`} onClick={closeMenu}>
            {branding?.logo_url ? (
              <img className="logo" src={branding.logo_url} alt="" width="26" height="26" />
            ) : (
              <span className="mark">
                <Icon name="sim" />
              </span>
            )}
            <span className="brand-name">{name}</span>
          </Link>
          <ModeSwitch />
          <CommandPalette />
          <button
            type="button"
            className="button icon-only menu-button"
            popoverTarget="navigation"
            aria-label="Menu"
          >
            <Icon name="menu" />
          </button>
        </header>
        <div className="nav" id="navigation" popover="auto" ref={menu}>
          <Navigation onFollow={closeMenu} />
          <section className="account" aria-label="Account">
            <UserMenu onSignOut={() => void signOut()} />
          </section>
        </div>
      </div>
      <main id="content" ref={main} tabIndex={-1}>
        {denied ? <Denied name={denied} /> : <Outlet />}
      </main>
      <Toasts />
    </div>
  );
}

/** An address may lead to a screen that the session may not see. */
function Denied({ name }: { name: string }) {
  return (
    <Screen
      name={name}
      lead={`Your access does not include ${name}. Ask the person who sent you the link to the portal.`}
    />
  );
}

/** The pattern of failures in charts. Styles refer to it by its id. */
function Hatch() {
  return (
    <svg className="sprite" aria-hidden="true">
      <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
        <rect width="1.6" height="5" stroke="none" />
      </pattern>
    </svg>
  );
}
