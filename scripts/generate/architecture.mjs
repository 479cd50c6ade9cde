// Draws the dependencies between the folders of src, as imported, for the picture in CONTRIBUTING.md.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const BEGIN = '<!-- architecture: written by `npm run generate` -->';
const END = '<!-- end of architecture -->';
/** Folders that are not features, in the order of the picture. */
const LAYERS = ['main', 'embedded', 'apps', 'infra', 'config', 'common'];

const folderOf = (file) => {
  const [first, ...rest] = path.relative(path.join(root, 'src'), file).split(path.sep);
  // Entry points are in src itself.
  return rest.length > 0 ? first : 'main';
};

/** @returns for each folder the folders that its files import, including type imports */
function readImports() {
  const uses = new Map();
  const files = readdirSync(path.join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => path.join(entry.parentPath, entry.name));
  for (const file of files) {
    const folder = folderOf(file);
    const used = uses.get(folder) ?? new Set();
    uses.set(folder, used);
    for (const [, target] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const resolved = path.resolve(path.dirname(file), target);
      if (resolved.startsWith(path.join(root, 'src') + path.sep)) used.add(folderOf(resolved));
    }
    used.delete(folder);
  }
  return uses;
}

/** @returns whether `to` can be reached from `from` without the direct arrow */
function isReachedOtherwise(uses, from, to) {
  // config and infra import each other (addresses, settings), so visit each folder only once.
  const seen = new Set([from]);
  const reaches = (start) => {
    if (start === to) return true;
    if (seen.has(start)) return false;
    seen.add(start);
    return [...(uses.get(start) ?? [])].some(reaches);
  };
  return [...uses.get(from)].some((next) => next !== to && reaches(next));
}

/** Removes transitive uses from `uses`. @returns one line per remaining use */
function arrows(uses) {
  for (const [from, used] of uses)
    for (const to of [...used].toSorted()) if (isReachedOtherwise(uses, from, to)) used.delete(to);
  return [...uses].flatMap(([from, used]) => [...used].toSorted().map((to) => `${from} --> ${to}`));
}

function draw(uses) {
  const features = [...uses.keys()].filter((name) => !LAYERS.includes(name)).toSorted();
  const layers = LAYERS.filter((name) => uses.has(name));
  const ofFeatures = new Map(
    features.map((name) => [name, new Set([...uses.get(name)].filter((used) => features.includes(used)))]),
  );
  const lines = arrows(ofFeatures).map((arrow) => `    ${arrow}`);
  // One arrow shows that every feature may use the layers below.
  const outside = new Map(layers.map((name) => [name, new Set()]));
  outside.set('features', new Set());
  for (const [name, used] of uses) {
    const from = features.includes(name) ? 'features' : name;
    for (const each of used) outside.get(from).add(features.includes(each) ? 'features' : each);
    outside.get(from).delete(from);
  }
  const between = arrows(outside).map((arrow) => `  ${arrow}`);
  const alone = features.filter((name) => !lines.some((line) => line.split(/ --> | +/).includes(name)));
  return [
    'flowchart TD',
    '  subgraph features',
    ...alone.map((name) => `    ${name}`),
    ...lines,
    '  end',
    ...between,
  ];
}

/** Finds features that a rule `<feature>-uses-only-what-it-may` allows but no file imports. */
function unusedAllowances(uses) {
  const { forbidden } = createRequire(import.meta.url)('../../.dependency-cruiser.cjs');
  return forbidden.flatMap(({ name, to }) => {
    const feature = /^(.+)-uses-only-what-it-may$/.exec(name)?.[1];
    if (!feature) return [];
    const allowed = /\(([^)]*)\)/.exec(to.pathNot)[1].split('|');
    return allowed
      .filter((other) => other !== feature && !uses.get(feature)?.has(other))
      .map((other) => `.dependency-cruiser.cjs: ${feature} may use ${other} but does not`);
  });
}

/**
 * Redraws the picture in CONTRIBUTING.md.
 * @throws Error if the page has no place for it, or if .dependency-cruiser.cjs allows an import that no file has
 */
export function withArchitecture(page) {
  const uses = readImports();
  const unused = unusedAllowances(uses);
  if (unused.length > 0) throw new Error(unused.join('\n'));
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from === -1 || to === -1)
    throw new Error(`CONTRIBUTING.md has no place for the picture: ${BEGIN} ... ${END}`);
  return `${page.slice(0, from)}${BEGIN}\n\n\`\`\`mermaid\n${draw(uses).join('\n')}\n\`\`\`\n\n${page.slice(to)}`;
}
