/** Returns a function that runs `action` once at the end of this turn of the event loop, however often it is called. */
export function oncePerTurn(action: () => void): () => void {
  let isPlanned = false;
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      action();
    });
  };
}
