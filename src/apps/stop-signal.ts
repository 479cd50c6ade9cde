/** What is left of the promise "within 5 s" after the apps' own deadline. */
const GRACE_MS = 800;

/**
 * Stops once, cleanly, on SIGINT or SIGTERM; a second signal ends the process at once. One handler for the whole
 * process: Nest's own shutdown hooks would close several apps side by side and send the signal again.
 */
export function onStopSignal(deadlineMs: number, stop: () => Promise<void>): void {
  let stopping = false;
  const handle = (): void => {
    if (stopping) process.exit(1);
    stopping = true;
    // Work that does not end in time is left to its lease: another worker takes it up (D1).
    setTimeout(() => process.exit(1), deadlineMs + GRACE_MS).unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(`stop failed: ${(error as Error).message}`);
        process.exit(1);
      },
    );
  };
  process.on('SIGINT', handle);
  process.on('SIGTERM', handle);
}
