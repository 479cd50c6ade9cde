/**
 * How much of something a test does: enough to catch a mistake in every run, or with `TEST_SIZE=full` as much as the
 * guarantee was first shown with. `variable` chooses a number for one test alone.
 */
export function size(variable: string, usual: number, full: number): number {
  const chosen = process.env[variable];
  if (chosen !== undefined) return Number(chosen);
  return process.env['TEST_SIZE'] === 'full' ? full : usual;
}
