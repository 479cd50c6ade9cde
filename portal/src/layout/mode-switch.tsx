import { useNavigate } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import type { Mode } from '../api/types.ts';
import { useMode } from './use-mode.ts';

const NAMES: Record<Mode, string> = { sandbox: 'Sandbox', live: 'Live' };

/** Switches all screens. Filters and what is open belong to one mode and do not come along. */
export function ModeSwitch() {
  const { modes } = useSession();
  const mode = useMode();
  const navigate = useNavigate();
  const choose = (next: Mode) => {
    // An object of the other mode is no page of this one: an endpoint's page leads back to the list.
    const list = window.location.pathname.replace(/^(\/developers\/\w[\w-]*|\/[\w-]+)(\/.*)?$/, '$1');
    const isObject = /^\/developers\/[\w-]+\/./.test(window.location.pathname);
    void navigate({ to: isObject ? list : window.location.pathname, search: { mode: next } });
  };
  return (
    <fieldset className="mode-switch">
      <legend className="visually-hidden">Mode</legend>
      {modes.map((each) => (
        <label key={each}>
          <input type="radio" name="portal-mode" checked={each === mode} onChange={() => choose(each)} />
          <span>{NAMES[each]}</span>
        </label>
      ))}
    </fieldset>
  );
}
