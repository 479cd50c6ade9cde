import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'vitest/config';

/** What the build makes of a source of the service, both relative to the repository's root; null: no file of its own. */
export function builtFileOf(source: string): string | null {
  const isBuilt = /^(src|migrations|chaos)\/.*\.ts$/.test(source);
  return isBuilt ? path.join('dist', source.replace(/\.ts$/, '.js')) : null;
}

/**
 * Lets tests load the service as Node.js does, from the build (`dist`, made by global-setup.ts of these very sources):
 * to transform its 500 modules again, and to load them one by one through vitest, costs each file of tests two seconds.
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
      // The build keeps what an older source was compiled to.
      if (!existsSync(file)) return null;
      const built = path.join(root, builtFile);
      if (!existsSync(built)) throw new Error(`${name} is not built: npm run build`);
      return { id: built, external: true };
    },
  };
}
