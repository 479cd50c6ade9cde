import { useRef, useState } from 'react';

type Action = { busy: boolean; error: unknown; run: () => Promise<boolean>; clear: () => void };

/** The pressed button may be gone with what it changed. The keyboard then goes on in the screen, not before it. */
function keepFocus(): void {
  const isLost = document.activeElement === document.body && !document.querySelector('[role=dialog]');
  if (isLost) document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true });
}

/**
 * Runs one change at a time. Only `perform` receives the response, because a response cache would keep a key or a
 * secret. `run` returns whether it succeeded.
 */
export function useAction(perform: () => Promise<void>): Action {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const running = useRef(false);
  const run = async () => {
    if (running.current) return false;
    running.current = true;
    setBusy(true);
    setError(null);
    try {
      await perform();
      return true;
    } catch (thrown) {
      setError(thrown);
      return false;
    } finally {
      running.current = false;
      setBusy(false);
      window.setTimeout(keepFocus);
    }
  };
  return { busy, error, run, clear: () => setError(null) };
}
