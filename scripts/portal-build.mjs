// Builds the pages of the portal into dist/portal when one of their sources is newer, with a compressed copy beside each
// file: the portal role sends those to browsers that take them.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const SOURCES = ['src', 'index.html', 'package.json', 'vite.config.mjs', 'tsconfig.json'];
const COMPRESSED = /\.(js|css|html|svg|json)$/;

/** Does nothing where the pages have no sources, or nothing to build them with: what was built before is served. */
export function buildPortalIfStale(root) {
  const portal = path.join(root, 'portal');
  const vite = path.join(root, 'node_modules/vite/bin/vite.js');
  if (!existsSync(path.join(portal, 'vite.config.mjs')) || !existsSync(vite)) return;
  const output = path.join(root, 'dist/portal');
  const stamp = path.join(output, '.built');
  const reference = path.join(root, 'docs/reference/index.html');
  const sources = [
    ...SOURCES.map((name) => path.join(portal, name)),
    path.join(root, 'package-lock.json'),
    reference,
  ];
  const built = newest(stamp);
  if (built > 0 && sources.every((source) => newest(source) <= built)) return;
  const startedAt = new Date();
  process.stderr.write('building (the pages of the portal, only after a change) ...\n');
  const args = [vite, 'build', '--outDir', output, '--emptyOutDir', '--logLevel', 'warn'];
  // Under NODE_ENV=test Vite would bundle React's development half.
  const env = { ...process.env, NODE_ENV: 'production' };
  const { status } = spawnSync(process.execPath, args, { cwd: portal, env, stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
  if (existsSync(reference)) copyFileSync(reference, path.join(output, 'reference.html'));
  compress(output);
  writeFileSync(stamp, '');
  utimesSync(stamp, startedAt, startedAt);
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

/** The latest change of a file or of anything in a folder, in milliseconds; 0 when it is not there. */
function newest(file) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(file).reduce((latest, name) => Math.max(latest, newest(path.join(file, name))), 0);
}
