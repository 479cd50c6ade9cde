import { useRef, useState } from 'react';
import { useSession } from '../api/session.ts';
import { Icon } from '../components/icon.tsx';
import { chooseTheme, savedTheme, THEMES } from './theme.ts';

const initials = (name: string): string =>
  name
    .split(/\s+/)
    .slice(0, 2)
    .map((word) => word.charAt(0).toUpperCase())
    .join('');

/** The signed-in user, with the choice of a theme and the way out. */
export function UserMenu({ onSignOut }: { onSignOut: () => void }) {
  const { actor, partner } = useSession();
  const [theme, setTheme] = useState(savedTheme);
  const details = useRef<HTMLDetailsElement | null>(null);
  const name = actor.name ?? actor.id;
  const close = () => {
    if (details.current) details.current.open = false;
  };
  return (
    <details
      ref={details}
      className="user"
      onBlur={({ relatedTarget, currentTarget }) => {
        if (relatedTarget && !currentTarget.contains(relatedTarget)) close();
      }}
      onKeyDown={({ key, currentTarget }) => {
        if (key !== 'Escape') return;
        close();
        currentTarget.querySelector('summary')?.focus();
      }}
    >
      <summary>
        <span className="avatar" aria-hidden="true">
          {initials(name)}
        </span>
        <span className="who">
          <strong>{name}</strong>
          <span className="muted">{partner.name}</span>
        </span>
        <Icon name="updown" />
      </summary>
      <div className="menu">
        <fieldset>
          <legend className="hidden">Theme</legend>
          {THEMES.map(([value, text]) => (
            <label key={value}>
              <input
                type="radio"
                name="portal-theme"
                checked={theme === value}
                onChange={() => {
                  chooseTheme(value);
                  setTheme(value);
                }}
              />
              {text}
            </label>
          ))}
        </fieldset>
        <hr />
        <button type="button" onClick={onSignOut}>
          <Icon name="out" />
          Sign out
        </button>
      </div>
    </details>
  );
}
