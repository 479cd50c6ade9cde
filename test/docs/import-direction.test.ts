import { expect, it } from 'vitest';
import { NodeChild } from '../harness/child-process.js';

it('imports go in one direction, in no circle, and across features by their index alone', async () => {
  const args = ['node_modules/.bin/depcruise', 'src', 'migrations', '--config', '.dependency-cruiser.cjs'];
  const cruise = NodeChild.launch({ args, env: {} });
  const code = await cruise.exited();
  expect(code, cruise.stdout + cruise.stderr).toBe(0);
  expect(cruise.stdout).toMatch(/no dependency violations found \(\d{3,} modules/);
});
