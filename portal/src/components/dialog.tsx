import { Dialog as Base } from '@base-ui/react/dialog';
import { useEffect, useState, type FormEvent, type ReactNode } from 'react';
import { Icon } from './icon.tsx';

type Props = {
  onClose: () => void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  /** Buttons at the end; the last one decides. */
  foot?: ReactNode;
  /** Shown beside the buttons of a dialog that acts in Live. */
  live?: ReactNode;
  /** Makes the dialog a form. */
  onSubmit?: () => void;
  /** False while the dialog shows something that cannot be shown again: only its own button then closes it. */
  dismissible?: boolean;
};

const FOCUSABLE = 'a[href], button:not(:disabled), input, select, [tabindex="0"]';

/**
 * The nearest place to `opener` that still exists: itself, or the first control of what surrounds it. A revoked key has
 * no button, but it still has a row.
 */
function placeOf(chain: readonly HTMLElement[]): HTMLElement | null {
  const [opener] = chain;
  if (opener?.isConnected && opener.offsetParent !== null) return opener;
  for (const around of chain.slice(1)) {
    if (!around.isConnected) continue;
    const isMain = around.tagName === 'MAIN';
    const control = isMain ? around : around.querySelector<HTMLElement>(FOCUSABLE);
    if (control) return control;
  }
  return document.querySelector('main');
}

function chainOf(element: Element | null): HTMLElement[] {
  const chain: HTMLElement[] = [];
  for (let at = element; at instanceof HTMLElement && at !== document.body; at = at.parentElement)
    chain.push(at);
  return chain;
}

/** The opener of the dialog on the screen. A dialog that follows another one has the same opener. */
let openerChain: HTMLElement[] = [];

function captureOpener(): HTMLElement[] {
  const { activeElement } = document;
  const isOutside = activeElement !== document.body && !activeElement?.closest('[role=dialog]');
  if (isOutside) openerChain = chainOf(activeElement);
  return openerChain;
}

/** Returns the focus to the element that had it before the dialog, unless something else took it meanwhile. */
export function useReturnedFocus(): void {
  const [chain] = useState(captureOpener);
  useEffect(
    () => () => {
      window.setTimeout(() => {
        if (document.activeElement === document.body && document.querySelector('[role=dialog]') === null)
          placeOf(chain)?.focus();
      });
    },
    [chain],
  );
}

/**
 * A modal dialog named by its title, for one decision. Render it only while it is open: it then traps the focus, and
 * returns it at the end.
 */
export function Dialog({
  onClose,
  title,
  description,
  children,
  foot,
  live,
  onSubmit,
  dismissible = true,
}: Props) {
  useReturnedFocus();
  const content = (
    <>
      {(children || description) && (
        <div className="dialog-body">
          {description && <Base.Description className="muted">{description}</Base.Description>}
          {children}
        </div>
      )}
      {foot && (
        <div className="dialog-foot">
          {live && (
            <p>
              <Icon name="live" />
              <span>{live}</span>
            </p>
          )}
          {foot}
        </div>
      )}
    </>
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit?.();
  };
  return (
    <Base.Root
      open
      disablePointerDismissal={!dismissible}
      onOpenChange={(next) => {
        if (!next && dismissible) onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className="dialog">
          <div className="dialog-head">
            <Base.Title>{title}</Base.Title>
          </div>
          {onSubmit ? (
            <form className="dialog-form" noValidate onSubmit={submit}>
              {content}
            </form>
          ) : (
            content
          )}
          {/* Last in the DOM, so that the first field gets the focus; CSS places it at the top. */}
          {dismissible && (
            <Base.Close className="button quiet icon-only dialog-close" aria-label="Close">
              <Icon name="close" />
            </Base.Close>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
