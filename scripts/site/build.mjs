import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { renderNotFound, renderPage } from './html.mjs';
import { readSite, SITE } from './pages.mjs';

const STYLES = 'portal/src/styles';
const FONT = /url\('\.\/fonts\/([\w-]+\.woff2)'\)/g;

/**
 * Writes the documentation below the portal's built pages: a page and a Markdown twin for each address, the downloads,
 * `llms.txt` and `llms-full.txt`, and files with a hash in their name under `assets/`.
 */
export function buildSite(root, target) {
  const read = (file) => readFileSync(path.join(root, file));
  const write = (file, content) => {
    mkdirSync(path.dirname(path.join(target, file)), { recursive: true });
    writeFileSync(path.join(target, file), content);
  };
  /** @returns the address of the asset, which may be cached forever */
  const asset = (name, extension, content) => {
    const hash = createHash('sha256').update(content).digest('base64url').slice(0, 8);
    const file = `assets/${name}-${hash}.${extension}`;
    write(file, content);
    return `/${file}`;
  };
  const fontAddresses = {};
  const tokens = read(`${STYLES}/tokens.css`)
    .toString()
    .replaceAll(FONT, (_, name) => {
      fontAddresses[name] ??= asset(name.replace('.woff2', ''), 'woff2', read(`${STYLES}/fonts/${name}`));
      return `url('${fontAddresses[name]}')`;
    });
  const site = readSite(root);
  const pages = site.groups.flatMap((group) => group.pages);
  const assets = {
    style: asset('docs', 'css', `${tokens}\n${read('portal/docs/docs.css')}`),
    script: asset('docs', 'js', read('portal/docs/docs.js')),
    icon: asset('docs-icon', 'svg', read('portal/src/icon.svg')),
    font: fontAddresses['inter-latin-wght-normal.woff2'],
  };
  // The index needs the sections of all pages, and every page needs the address of the index.
  const sections = pages.flatMap((page) => renderPage(page, site, assets).sections);
  assets.index = asset('docs-search', 'json', JSON.stringify(sections));
  for (const page of pages) {
    write(`${page.address}.html`, renderPage(page, site, assets).html);
    write(`${page.address}.md`, page.markdown);
  }
  write('docs/404.html', renderNotFound(site, assets));
  for (const file of site.downloads)
    cpSync(path.join(root, file), path.join(target, file), { recursive: true });
  write('llms.txt', llmsIndex(site));
  write(
    'llms-full.txt',
    pages.map(({ address, markdown }) => `<!-- ${address}.md -->\n\n${markdown}`).join('\n'),
  );
}

/** An overview of all pages for language models, as described at https://llmstxt.org. */
function llmsIndex({ groups, downloads }) {
  const entry = ({ title, address, summary }) => `- [${title}](${address}.md): ${summary}`;
  const sections = groups.map(({ label, pages }) => `## ${label}\n\n${pages.map(entry).join('\n')}`);
  return `# ${SITE}

> Sell eSIMs: browse a catalog, place orders, read issued eSIMs with their install data, and receive signed webhooks.

Every page is also Markdown, at its address with \`.md\`. All pages in one file: [llms-full.txt](/llms-full.txt).

${sections.join('\n\n')}

## Downloads

${downloads.map((file) => `- [${path.basename(file)}](/${file})`).join('\n')}
`;
}
