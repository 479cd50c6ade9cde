import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { PATIENCE_MS } from '../harness/eventually.js';

const NPM_MS = PATIENCE_MS;

export interface Packed {
  readonly archive: string;
  /** What is in it. */
  readonly files: readonly string[];
}

/** The package as a partner gets it. The tests' set-up has compiled it: to compile here would change the program under other tests. */
export function packSdk(folder: string): Packed {
  const options = ['--json', '--ignore-scripts', '--pack-destination', folder];
  const packed = npm(path.join(PROJECT_ROOT, 'sdk'), 'pack', ...options);
  const [{ filename, files }] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }];
  return { archive: path.join(folder, filename), files: files.map((file) => file.path) };
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], timeout: NPM_MS }).toString();
}

/** An empty project with the package in it. */
export function projectWithSdk(archive: string, name: string): string {
  const home = path.join(path.dirname(archive), name);
  mkdirSync(home);
  writeFileSync(path.join(home, 'package.json'), '{ "private": true, "type": "module" }');
  npm(home, 'install', '--offline', '--no-audit', '--no-fund', archive);
  return home;
}

/** What the strict compiler says of programs in this project. */
export function compile(home: string, files: readonly string[]): string {
  const tsc = path.join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc');
  const types = path.join(PROJECT_ROOT, 'node_modules/@types');
  const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
  const system = ['--module', 'nodenext', '--target', 'es2024', '--types', 'node', '--typeRoots', types];
  try {
    return execFileSync(process.execPath, [tsc, ...options, ...system, ...files], { cwd: home }).toString();
  } catch (error) {
    return (error as { stdout: Buffer }).stdout.toString();
  }
}
