// Draws which folder of src uses which, from the imports themselves, into CONTRIBUTING.md. `npm run architecture`
// writes the picture; `-- --check` compares it, and shows what .dependency-cruiser.cjs allows and nobody uses.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const PAGE = path.join(root, 'CONTRIBUTING.md');
const BEGIN = '<!-- architecture: written by `npm run architecture` -->';
const END = '<!-- end of architecture -->';
/** Not features: what they stand on, and who puts them together. The order is that of the picture. */
const LAYERS = ['main', 'embedded', 'apps', 'infra', 'config', 'common'];

const folderOf = (file) => {
  const [first, ...rest] = path.relative(path.join(root, 'src'), file).split(path.sep);
  // Entry points lie in src itself.
  return rest.length > 0 ? first : 'main';
};

/** Folder to the folders that its files import, types included. */
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

/** Whether `to` is reached from `from` without the direct arrow. */
function isReachedOtherwise(uses, from, to) {
  // config and infra use each other (addresses, settings): whoever was there is not gone round again.
  const seen = new Set([from]);
  const reaches = (start) => {
    if (start === to) return true;
    if (seen.has(start)) return false;
    seen.add(start);
    return [...(uses.get(start) ?? [])].some(reaches);
  };
  return [...uses.get(from)].some((next) => next !== to && reaches(next));
}

/** One line for each use that does not follow from others; what follows is taken out of `uses`. */
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
  // Every feature may use what is below; one arrow stands for all of theirs.
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

/** What a rule `<feature>-uses-only-what-it-may` allows beyond what is used. */
function unusedAllowances(uses) {
  const { forbidden } = createRequire(import.meta.url)('../.dependency-cruiser.cjs');
  return forbidden.flatMap(({ name, to }) => {
    const feature = /^(.+)-uses-only-what-it-may$/.exec(name)?.[1];
    if (!feature) return [];
    const allowed = /\(([^)]*)\)/.exec(to.pathNot)[1].split('|');
    return allowed
      .filter((other) => other !== feature && !uses.get(feature)?.has(other))
      .map((other) => `.dependency-cruiser.cjs: ${feature} may use ${other} and does not`);
  });
}

const uses = readImports();
const picture = `${BEGIN}\n\n\`\`\`mermaid\n${draw(uses).join('\n')}\n\`\`\`\n\n${END}`;
const page = readFileSync(PAGE, 'utf8');
const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
if (from === -1 || to === -1)
  throw new Error(`CONTRIBUTING.md has no place for the picture: ${BEGIN} ... ${END}`);
const drawn = page.slice(0, from) + picture + page.slice(to + END.length);
const faults = unusedAllowances(uses);
if (process.argv.includes('--check')) {
  if (drawn !== page)
    faults.push('CONTRIBUTING.md: the picture is not that of the code: run `npm run architecture`');
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  process.exit(faults.length > 0 ? 1 : 0);
}
writeFileSync(PAGE, drawn);
process.stdout.write('the picture in CONTRIBUTING.md is drawn\n');
