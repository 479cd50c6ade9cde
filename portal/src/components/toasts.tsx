import { useSyncExternalStore } from 'react';

type Toast = { id: number; text: string; undo?: () => void };

/** Long enough to read, and to reach the button. */
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

/** Says what has happened, and takes it back where that is possible. */
export function notify(text: string, undo?: () => void): void {
  const id = ++lastId;
  change([...toasts.slice(-2), undo ? { id, text, undo } : { id, text }]);
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
          <div key={toast.id} className="toast">
            <span>{toast.text}</span>
            {toast.undo && (
              <button
                type="button"
                className="button small"
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
              className="button quiet"
              aria-label="Dismiss"
              onClick={() => dismiss(toast.id)}
            >
              <span aria-hidden="true">✕</span>
            </button>
          </div>
        ))}
      </div>
    </section>
  );
}
