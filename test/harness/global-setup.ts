import 'reflect-metadata';
import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser URL of the server; its databases are cloned from `TEMPLATE_DATABASE`. */
    postgresUrl: string;
  }
}

const run = promisify(execFile);

/** A server with the template, and a build, that are there already: many runs of a few tests share them. */
const PREPARED_SERVER = process.env['TEST_PREPARED_SERVER'];

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (PREPARED_SERVER !== undefined) {
    project.provide('postgresUrl', PREPARED_SERVER);
    project.provide('backing', null);
    return () => Promise.resolve();
  }
  const { root, execArgv } = project.config;
  // Tests load the service from the build (built-service.plugin.ts), so it must be this source's.
  const parts = ['service', 'portal', 'sdk', 'cli'];
  execFileSync(process.execPath, ['scripts/build.mjs', ...parts], { stdio: 'inherit', cwd: root });
  const compiled = Promise.all([
    compileOnce(root, execArgv, 'src/apps/role-process.js'),
    compileOnce(root, [], 'src/apps/role-process.js'),
  ]);
  // Awaited below: its failure must not be one that nobody handles while the server starts.
  compiled.catch(() => undefined);
  // What it imports of the service is looked for in the build before its first line runs, so it is no part of this file.
  const { startTestServer } = await import('./test-server.js');
  const stop = await startTestServer(project);
  try {
    await compiled;
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/**
 * Leaves a module of the build, with all that it imports, in Node.js's compile cache, which has a part for each set of V8's
 * flags. Else each of the first processes of tests compiles it, and as all end at about the same time they write the same three
 * thousand files into one folder at once: 4 s of CPU for each of them, and 15 s of waiting.
 */
async function compileOnce(cwd: string, flags: readonly string[], module: string): Promise<void> {
  const program = `import 'reflect-metadata'; import './dist/${module}';`;
  await run(process.execPath, [...flags, '--input-type=module', '--eval', program], { cwd });
}
