// Builds the pages of the portal into dist/portal when one of their sources is newer. Also a program: `node
// scripts/portal-build.mjs`. Without Vite (production has no devDependencies) it leaves what is there.
import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const SOURCES = ['portal/src', 'portal/index.html', 'portal/vite.config.mjs', 'package-lock.json'];

function newest(file) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(file).reduce((latest, name) => Math.max(latest, newest(path.join(file, name))), 0);
}

/** @returns whether it built */
export async function buildPortalIfStale(root) {
  const stamp = path.join(root, 'dist/portal/.built');
  const built = newest(stamp);
  if (built > 0 && SOURCES.every((source) => newest(path.join(root, source)) <= built)) return false;
  if (!existsSync(path.join(root, 'node_modules/vite')) || !existsSync(path.join(root, 'portal/src')))
    return false;
  const { build } = await import('vite');
  // Its time is that of the build's start: an edit made while it ran must count as newer.
  const startedAt = new Date();
  await build({ configFile: path.join(root, 'portal/vite.config.mjs'), logLevel: 'error' });
  writeFileSync(stamp, '');
  utimesSync(stamp, startedAt, startedAt);
  return true;
}

if (import.meta.main) await buildPortalIfStale(path.resolve(import.meta.dirname, '..'));
