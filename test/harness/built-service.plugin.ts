import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'vitest/config';

/** The build output of a source file, both relative to the repository root, or null if it has none. */
export function builtFileOf(source: string): string | null {
  const isBuilt = /^(src|migrations|chaos)\/.*\.ts$/.test(source);
  return isBuilt ? path.join('dist', source.replace(/\.ts$/, '.js')) : null;
}

/**
 * Makes tests load the service from the build (`dist`, which global-setup.ts creates from these sources). Transforming
 * and loading its 500 modules through vitest would cost each test file two seconds.
 */
export function builtService(root: string): Plugin {
  return {
    name: 'built-service',
    enforce: 'pre',
    resolveId(source, importer) {
      if (!source.startsWith('.') || importer === undefined) return null;
      const file = path.resolve(path.dirname(importer.split('?')[0]!), source).replace(/\.js$/, '.ts');
      const name = path.relative(root, file);
      const builtFile = builtFileOf(name);
      if (builtFile === null) return null;
      // The build still contains output of deleted sources.
      if (!existsSync(file)) return null;
      const built = path.join(root, builtFile);
      if (!existsSync(built)) throw new Error(`${name} is not built: npm run build`);
      return { id: built, external: true };
    },
  };
}
