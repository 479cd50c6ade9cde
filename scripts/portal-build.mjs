// Builds the pages of the portal into dist/portal when one of their sources is newer, with a compressed copy beside each
// file: the portal role sends those to browsers that take them.
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { isFresh, runCompiler, stampBuild } from './build-step.mjs';

const SOURCES = ['src', 'index.html', 'package.json', 'vite.config.mjs', 'tsconfig.json'];
const COMPRESSED = /\.(js|css|html|svg|json)$/;

/** Also where the pages have no sources, or nothing to build them with: what was built before is served. */
export function isPortalFresh(root) {
  const { portal, vite, stamp, reference } = placesIn(root);
  if (!existsSync(path.join(portal, 'vite.config.mjs')) || !existsSync(vite)) return true;
  const sources = SOURCES.map((name) => path.join(portal, name));
  return isFresh(stamp, [...sources, path.join(root, 'package-lock.json'), reference]);
}

function placesIn(root) {
  const output = path.join(root, 'dist/portal');
  return {
    portal: path.join(root, 'portal'),
    vite: path.join(root, 'node_modules/vite/bin/vite.js'),
    output,
    stamp: path.join(output, '.built'),
    reference: path.join(root, 'docs/reference/index.html'),
  };
}

/** Answers the exit code of the compiler. */
export async function buildPortal(root) {
  const { portal, vite, output, stamp, reference } = placesIn(root);
  const startedAt = new Date();
  const args = [vite, 'build', '--outDir', output, '--emptyOutDir', '--logLevel', 'warn'];
  // Under NODE_ENV=test Vite would bundle React's development half.
  const env = { ...process.env, NODE_ENV: 'production' };
  const status = await runCompiler(args, { cwd: portal, env });
  if (status !== 0) return status;
  if (existsSync(reference)) copyFileSync(reference, path.join(output, 'reference.html'));
  compress(output);
  stampBuild(stamp, startedAt);
  return 0;
}

function compress(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    const file = path.join(folder, name);
    if (!COMPRESSED.test(name) || !statSync(file).isFile()) continue;
    const content = readFileSync(file);
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
    writeFileSync(
      `${file}.br`,
      brotliCompressSync(content, {
        params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
      }),
    );
  }
}
