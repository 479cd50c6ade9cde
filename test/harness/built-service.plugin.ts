import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'vitest/config';

/** What the build compiles, file by file. */
const COMPILED = /^(src|migrations|chaos)\/.*\.ts$/;

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
      if (!COMPILED.test(name)) return null;
      // The build keeps what an older source was compiled to.
      if (!existsSync(file)) return null;
      const built = path.join(root, 'dist', name.replace(/\.ts$/, '.js'));
      if (!existsSync(built)) throw new Error(`${name} is not built: npm run build`);
      return { id: built, external: true };
    },
  };
}
