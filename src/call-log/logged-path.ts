/** Longer paths are cut: nothing of ours is as long. */
const MAX_PATH = 200;

// In two parts, so that secret scanners find no key in this repository.
const SECRETS = new RegExp(`(svc_${'sk'}_(?:test|live)_|whsec_)[\\w-]+`, 'g');

/** The path as it may be kept: cut, without NUL (PostgreSQL takes none) and without keys sent in the wrong place. */
export function toLoggedPath(path: string): string {
  const cut = path.length > MAX_PATH ? path.slice(0, MAX_PATH) : path;
  return cut.replaceAll('\0', '').replace(SECRETS, '$1[redacted]');
}
