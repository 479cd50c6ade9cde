import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState, type KeyboardEvent } from 'react';
import { useSession } from '../api/session.ts';
import { Dialog } from '../components/dialog.tsx';
import { SCREENS } from './navigation.tsx';

type Choice = { name: string; go: () => void };

/** A pasted id leads to its object. */
const IDS: readonly [RegExp, string, (id: string) => string][] = [
  [/^req_\w+$/, 'Request', (id) => `/developers/requests/${id}`],
  [/^ord_\w+$/, 'Order', (id) => `/orders/${id}`],
  [/^esim_\w+$/, 'eSIM', (id) => `/esims/${id}`],
];

/** Ctrl+K or Cmd+K: opens a screen by its name, or an object by its id. */
export function CommandPalette() {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState('');
  const [index, setIndex] = useState(0);
  const { scopes } = useSession();
  const navigate = useNavigate();

  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);

  const wanted = text.trim();
  const objects = IDS.filter(([pattern]) => pattern.test(wanted)).map(([, name, to]): Choice => ({
    name: `${name} ${wanted}`,
    go: () => void navigate({ to: to(wanted) }),
  }));
  const screens = SCREENS.filter(
    ({ name, scope }) => scopes.includes(scope) && name.toLowerCase().includes(wanted.toLowerCase()),
  ).map((screen): Choice => ({ name: screen.name, go: () => void navigate({ to: screen.to }) }));
  const choices = [...objects, ...screens];
  const active = Math.min(index, choices.length - 1);

  const close = () => {
    setOpen(false);
    setText('');
    setIndex(0);
  };
  const take = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    choice.go();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && choices.length > 0) {
      event.preventDefault();
      setIndex((active + step + choices.length) % choices.length);
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      take(choices[active]);
    }
  };

  return (
    <>
      <button type="button" className="button quiet palette-button" onClick={() => setOpen(true)}>
        Go to… <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <Dialog open={open} onClose={close} title="Go to">
        <label className="field">
          <span>Page or id</span>
          <input
            role="combobox"
            aria-expanded={choices.length > 0}
            aria-controls="palette-choices"
            aria-activedescendant={choices.length > 0 ? `palette-${active}` : undefined}
            aria-autocomplete="list"
            autoComplete="off"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setIndex(0);
            }}
            onKeyDown={onKeyDown}
          />
        </label>
        <ul id="palette-choices" role="listbox" aria-label="Results" className="palette-choices">
          {choices.map((choice, at) => (
            <li
              key={choice.name}
              id={`palette-${at}`}
              role="option"
              aria-selected={at === active}
              onClick={() => take(choice)}
            >
              {choice.name}
            </li>
          ))}
        </ul>
        {choices.length === 0 && (
          <p className="hint">
            No matches. Enter a page name, or an id that starts with req_, ord_ or esim_.
          </p>
        )}
      </Dialog>
    </>
  );
}
