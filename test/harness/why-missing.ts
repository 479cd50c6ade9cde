import { execFileSync } from 'node:child_process';

/** The reason why `command` is unusable on this machine, or null. */
export function whyMissing(command: string, versionArgument: string): string | null {
  try {
    execFileSync(command, [versionArgument], { stdio: 'ignore' });
    return null;
  } catch (error) {
    return `${command} ${versionArgument}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`;
  }
}
