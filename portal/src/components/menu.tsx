import { Menu as Base } from '@base-ui/react/menu';
import { useRef } from 'react';
import { Icon, type IconName } from './icon.tsx';

export type MenuEntry = {
  name: string;
  icon: IconName;
  onSelect: () => void;
  danger?: boolean;
  /** Why the action is not possible now. */
  refused?: string | undefined;
};

/** Rare and dangerous actions. An entry that is not possible says why. */
export function ActionMenu({
  entries,
  label = 'More actions',
}: {
  entries: readonly MenuEntry[];
  label?: string;
}) {
  const trigger = useRef<HTMLButtonElement | null>(null);
  if (entries.length === 0) return null;
  const select = (entry: MenuEntry) => {
    // The menu is gone when a dialog that it opens closes, so the focus returns to the button.
    trigger.current?.focus();
    entry.onSelect();
  };
  return (
    <Base.Root>
      <Base.Trigger ref={trigger} className="button icon-only" aria-label={label}>
        <Icon name="more" />
      </Base.Trigger>
      {/* Inside a landmark, where screen readers look for it. */}
      <Base.Portal container={document.querySelector<HTMLElement>('main')}>
        <Base.Positioner align="end" sideOffset={4} className="above">
          <Base.Popup className="menu">
            {entries.map((entry) => (
              <Base.Item
                key={entry.name}
                className={entry.danger ? 'danger' : ''}
                disabled={entry.refused !== undefined}
                onClick={() => select(entry)}
              >
                <Icon name={entry.icon} />
                <span>
                  {entry.name}
                  {entry.refused !== undefined && <small>{entry.refused}</small>}
                </span>
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
