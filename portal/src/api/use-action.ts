import { useRef, useState } from 'react';

type Action = { busy: boolean; error: unknown; run: () => Promise<boolean>; clear: () => void };

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
    }
  };
  return { busy, error, run, clear: () => setError(null) };
}
