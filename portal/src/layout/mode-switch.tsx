import { useNavigate } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import type { Mode } from '../api/types.ts';
import { Icon } from '../components/icon.tsx';
import { SCREENS } from './navigation.tsx';
import { MODE_NAMES, useMode } from './use-mode.ts';

/** Switches the mode of all screens. Filters and open objects belong to one mode and are reset. */
export function ModeSwitch() {
  const { modes } = useSession();
  const mode = useMode();
  const navigate = useNavigate();
  const choose = (next: Mode) => {
    // An object exists in one mode only, so return from its page to its list.
    const { pathname } = window.location;
    const list = SCREENS.find(({ to }) => pathname.startsWith(`${to}/`))?.to;
    void navigate({ to: list ?? pathname, search: { mode: next } });
  };
  return (
    <fieldset className="mode">
      <legend className="hidden">Mode</legend>
      {modes.map((each) => (
        <label key={each}>
          <input
            type="radio"
            name="portal-mode"
            value={each}
            checked={each === mode}
            onChange={() => choose(each)}
          />
          <Icon name={each} />
          {MODE_NAMES[each]}
        </label>
      ))}
    </fieldset>
  );
}
