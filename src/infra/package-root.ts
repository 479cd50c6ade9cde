import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The service's package, whether the process runs from `src` or `dist/src`. */
export interface PackageRoot {
  readonly folder: string;
  readonly version: string;
}

const NAME = 'partner-esim-service';

/** The nearest folder above this file with the service's package.json. @throws Error if there is none */
export const PACKAGE_ROOT: PackageRoot = findAbove(import.meta.dirname);

function findAbove(folder: string): PackageRoot {
  const found = readPackage(path.join(folder, 'package.json'));
  if (found?.name === NAME) return { folder, version: String(found.version) };
  const above = path.dirname(folder);
  if (above === folder) throw new Error(`no package.json of ${NAME} above ${import.meta.dirname}`);
  return findAbove(above);
}

function readPackage(file: string): { readonly name?: unknown; readonly version?: unknown } | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { readonly name?: unknown };
  } catch {
    return null;
  }
}
