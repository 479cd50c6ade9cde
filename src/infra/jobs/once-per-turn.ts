/** A function that has `action` run once at the end of this turn of the event loop, however often it is called in it. */
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
