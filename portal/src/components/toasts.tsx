import { useSyncExternalStore } from 'react';
import { Icon } from './icon.tsx';

type Toast = { id: number; text: string; about: string | undefined; undo: (() => void) | undefined };

/** Long enough to read the notice and reach its button. */
const SHOWN_FOR_MS = 12_000;

let toasts: Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function change(next: Toast[]) {
  toasts = next;
  for (const listener of listeners) listener();
}

function dismiss(id: number) {
  change(toasts.filter((toast) => toast.id !== id));
}

type Options = { about?: string; undo?: (() => void) | undefined };

/**
 * Shows a notice, with an undo button if possible.
 * @param options.about subject of the notice: an earlier notice about it is outdated and disappears
 */
export function notify(text: string, { about, undo }: Options = {}): void {
  const id = ++lastId;
  const others = toasts.filter((toast) => about === undefined || toast.about !== about);
  change([...others.slice(-2), { id, text, about, undo }]);
  window.setTimeout(() => dismiss(id), SHOWN_FOR_MS);
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <section className="toasts" aria-label="Notifications">
      <div role="status" aria-live="polite">
        {shown.map((toast) => (
          <div key={toast.id} className="toast" data-tone="good">
            <Icon name="ok" />
            <p>{toast.text}</p>
            {toast.undo && (
              <button
                type="button"
                className="button small quiet"
                onClick={() => {
                  dismiss(toast.id);
                  toast.undo?.();
                }}
              >
                Undo
              </button>
            )}
            <button
              type="button"
              className="button small quiet icon-only"
              aria-label="Dismiss"
              onClick={() => dismiss(toast.id)}
            >
              <Icon name="close" />
            </button>
          </div>
        ))}
      </div>
    </section>
  );
}
