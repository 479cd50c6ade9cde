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
  // Tests load the service from the build (built-service.plugin.ts), so it must be this source's.
  execFileSync(process.execPath, ['scripts/start.mjs', 'build'], {
    stdio: 'inherit',
    cwd: project.config.root,
  });
  const packages = run(process.execPath, ['scripts/packages.mjs'], { cwd: project.config.root });
  // Awaited below: its failure must not be one that nobody handles while the server starts.
  packages.catch(() => undefined);
  // What it imports of the service is looked for in the build before its first line runs, so it is no part of this file.
  const { startTestServer } = await import('./test-server.js');
  const stop = await startTestServer(project);
  try {
    await packages;
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
