import { execFileSync } from 'node:child_process';

/** Why `command` cannot be used on this machine, or null. */
export function whyMissing(command: string, versionArgument: string): string | null {
  try {
    execFileSync(command, [versionArgument], { stdio: 'ignore' });
    return null;
  } catch (error) {
    return `${command} ${versionArgument}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`;
  }
}
