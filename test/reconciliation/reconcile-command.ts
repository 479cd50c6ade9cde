import { runReconcile } from '../../src/apps/reconcile.app.js';
import { NodeChild } from '../harness/child-process.js';
import { testEnvironment } from '../harness/index.js';

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `npm run reconcile -- <args>` in a child process. */
export async function reconcileCommand(
  databaseUrl: string,
  { args = [], env = {} }: { args?: readonly string[]; env?: Record<string, string> } = {},
): Promise<CommandResult> {
  const child = NodeChild.launch({
    args: ['--enable-source-maps', 'scripts/start.mjs', 'reconcile', ...args],
    env: testEnvironment(databaseUrl, env),
  });
  const code = await child.exited();
  return { code, stdout: child.stdout, stderr: child.complaints.join('\n') };
}

/** Runs the command in this process, which is much faster, for tests that only check its findings. */
export async function reconcileHere(
  databaseUrl: string,
  { args = [], env = {} }: { args?: readonly string[]; env?: Record<string, string> } = {},
): Promise<CommandResult> {
  const lines = { stdout: [] as string[], stderr: [] as string[] };
  const code = await runReconcile(args, testEnvironment(databaseUrl, env), {
    log: (line: string) => void lines.stdout.push(line),
    error: (line: string) => void lines.stderr.push(line),
  });
  return { code, stdout: lines.stdout.join('\n'), stderr: lines.stderr.join('\n') };
}

/** Lines with differences, as [check, whole line]. */
export function differencesOf({ stdout }: CommandResult): readonly (readonly [string, string])[] {
  return [...stdout.matchAll(/^(?:ERROR|WARNING) (\w+): .*$/gm)].map((match) => [match[1]!, match[0]]);
}
