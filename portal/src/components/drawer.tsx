import { Dialog as Base } from '@base-ui/react/dialog';
import { useSyncExternalStore, type ReactNode } from 'react';
import { Icon } from './icon.tsx';

/** From this width on, the drawer has a column of its own. Below, it is a sheet over the page. */
const BESIDE = '(min-width: 80rem)';

function useBeside(): boolean {
  return useSyncExternalStore(
    (changed) => {
      const query = window.matchMedia(BESIDE);
      query.addEventListener('change', changed);
      return () => query.removeEventListener('change', changed);
    },
    () => window.matchMedia(BESIDE).matches,
  );
}

type Props = {
  onClose: () => void;
  title: string;
  /** In the bar at the top, before the close button. */
  head: ReactNode;
  children: ReactNode;
};

/** Shows one row of a list in detail, beside the list where there is room. */
export function Drawer({ onClose, title, head, children }: Props) {
  const beside = useBeside();
  return (
    <Base.Root
      open
      modal={!beside}
      disablePointerDismissal={beside}
      onOpenChange={(next) => {
        if (!next) onClose();
      }}
    >
      <Base.Portal className="drawer-place" container={document.querySelector<HTMLElement>('.app')}>
        {!beside && <Base.Backdrop className="backdrop" />}
        <Base.Popup className="drawer">
          <div className="drawer-head">
            {head}
            <Base.Close className="button quiet small icon-only" aria-label="Close" title="Close (Esc)">
              <Icon name="close" />
            </Base.Close>
          </div>
          <div className="drawer-body">
            <Base.Title className="hidden">{title}</Base.Title>
            {children}
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
