import { systemCode } from './errors.js';

/** Fast shutdown first: it ends the sessions and writes a checkpoint. The later ones leave crash recovery. */
const ESCALATION = [
  { signal: 'SIGINT', waitMs: 8_000 },
  { signal: 'SIGQUIT', waitMs: 8_000 },
  { signal: 'SIGKILL', waitMs: 8_000 },
] as const;

/**
 * Stops a server: SIGINT, after 8 s SIGQUIT, after 8 s more SIGKILL. Resolves when `ended` does.
 * @param signal the first signal to send
 */
export async function shutDown(
  pid: number,
  ended: Promise<unknown>,
  signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT',
): Promise<void> {
  const first = ESCALATION.findIndex((step) => step.signal === signal);
  for (const step of ESCALATION.slice(first)) {
    send(pid, step.signal);
    if (await settlesWithin(ended, step.waitMs)) return;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (systemCode(error) !== 'ESRCH') throw error;
  }
}

async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
