/**
 * The size of a test: enough to catch a mistake in every run, or with `TEST_SIZE=full` the size that first proved the
 * guarantee. `variable` sets the size of one test.
 */
export function size(variable: string, usual: number, full: number): number {
  const chosen = process.env[variable];
  if (chosen !== undefined) return Number(chosen);
  return process.env['TEST_SIZE'] === 'full' ? full : usual;
}
