import { execFile } from 'node:child_process';
import { expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';

/** Whether dependency-cruiser finds a breach in the service's sources, and what it prints. */
function cruise(config: string): Promise<{ readonly failed: boolean; readonly said: string }> {
  const args = ['node_modules/.bin/depcruise', 'src', 'migrations'];
  return new Promise((resolve) =>
    execFile(
      process.execPath,
      [...args, '--config', config],
      { cwd: PROJECT_ROOT },
      (error, stdout, stderr) => resolve({ failed: error !== null, said: stdout + stderr }),
    ),
  );
}

it('imports go in one direction, in no circle, and across features by their index alone', async () => {
  const { failed, said } = await cruise('.dependency-cruiser.cjs');
  expect(failed, said).toBe(false);
  expect(said).toMatch(/no dependency violations found \(\d{3,} modules/);
});
