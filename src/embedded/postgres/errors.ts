/**
 * The embedded PostgreSQL cannot be used (D2). The message is one line for the person who typed `npm start`; `cause`
 * keeps the original error if there is one.
 */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
}

/** The `code` of a Node.js system error (`ENOENT`, `EACCES`, ...), if it has one. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** The first line of any thrown value. */
export function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0] ?? '';
}

/**
 * Runs file system work and describes its failure.
 * @throws EmbeddedPostgresError `<failure>: <system message>`
 */
export async function orExplain<T>(failure: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error;
    throw new EmbeddedPostgresError(`${failure}: ${oneLine(error)}`, { cause: error });
  }
}
