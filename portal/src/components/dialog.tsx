import { Dialog as Base } from '@base-ui/react/dialog';
import type { ReactNode, RefObject } from 'react';

type Props = {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: string;
  children: ReactNode;
  /** False while the dialog shows something that cannot be shown again: only its own button then closes it. */
  dismissible?: boolean;
  /** `drawer`: full height at the right edge. */
  shape?: 'box' | 'drawer';
  initialFocus?: RefObject<HTMLElement | null>;
};

/** A modal dialog named by its title. It traps the focus, and returns it to the element that opened it. */
export function Dialog({
  open,
  onClose,
  title,
  description,
  children,
  dismissible = true,
  shape = 'box',
  initialFocus,
}: Props) {
  return (
    <Base.Root
      open={open}
      disablePointerDismissal={!dismissible}
      onOpenChange={(next) => {
        if (!next && dismissible) onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className={`dialog ${shape}`} {...(initialFocus ? { initialFocus } : {})}>
          <Base.Title className="dialog-title">{title}</Base.Title>
          {description !== undefined && <Base.Description className="hint">{description}</Base.Description>}
          {children}
          {/* Last in the DOM, so that the first field gets the focus; CSS places it at the top. */}
          {dismissible && (
            <Base.Close className="button quiet dialog-close" aria-label="Close">
              <span aria-hidden="true">✕</span>
            </Base.Close>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
