import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Source files and the command that runs them in a separate folder. */
export interface Program {
  readonly files: Readonly<Record<string, string>>;
  readonly command: readonly [string, ...string[]];
}

/**
 * Runs a program with `input` as JSON on stdin and returns the JSON that it prints.
 * @throws Error with its stderr
 */
export async function runProgram(program: Program, input: unknown, timeoutMs: number): Promise<unknown> {
  const directory = mkdtempSync(path.join(tmpdir(), 'esim-docs-'));
  try {
    for (const [name, text] of Object.entries(program.files)) writeFileSync(path.join(directory, name), text);
    return JSON.parse(await outputOf(program.command, directory, JSON.stringify(input), timeoutMs));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Runs a command with `input` on stdin and returns its stdout.
 * @throws Error with its stderr
 */
export function outputOf(
  [file, ...args]: Program['command'],
  cwd: string,
  input: string,
  timeout: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    // An outdated toolchain must fail instead of downloading another one.
    const env = { ...process.env, GOTOOLCHAIN: 'local' };
    const child = execFile(file, args, { cwd, timeout, env }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stderr}`, { cause: error }));
      else resolve(stdout);
    });
    // A program that exits before it reads stdin explains itself on stderr.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}
