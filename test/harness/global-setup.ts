import 'reflect-metadata';
import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser URL of the server, whose databases are cloned from `TEMPLATE_DATABASE`. */
    postgresUrl: string;
  }
}

const run = promisify(execFile);

/** An existing server with the template and an existing build, shared by many runs of a few tests. */
const PREPARED_SERVER = process.env['TEST_PREPARED_SERVER'];

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (PREPARED_SERVER !== undefined) {
    project.provide('postgresUrl', PREPARED_SERVER);
    project.provide('backing', null);
    return () => Promise.resolve();
  }
  const { root, execArgv } = project.config;
  // Tests load the service from the build (built-service.plugin.ts), so it must match the sources.
  const parts = ['service', 'portal', 'sdk', 'cli'];
  execFileSync(process.execPath, ['scripts/build.mjs', ...parts], { stdio: 'inherit', cwd: root });
  const compiled = Promise.all([
    compileOnce(root, execArgv, 'src/apps/role-process.js'),
    compileOnce(root, [], 'src/apps/role-process.js'),
  ]);
  // Awaited below. A failure while the server starts must not be an unhandled rejection.
  compiled.catch(() => undefined);
  // A dynamic import, because its imports of the service are resolved in the build, which must exist first.
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
 * Stores a module of the build and its imports in Node.js's compile cache, which is separate for each set of V8 flags.
 * Otherwise each of the first test processes compiles it, and all write the same three thousand files at about the same
 * time: 4 s of CPU each and 15 s of waiting.
 */
async function compileOnce(cwd: string, flags: readonly string[], module: string): Promise<void> {
  const program = `import 'reflect-metadata'; import './dist/${module}';`;
  await run(process.execPath, [...flags, '--input-type=module', '--eval', program], { cwd });
}
