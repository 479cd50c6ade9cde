import { Marked } from 'marked';
import { plain, SITE } from './pages.mjs';

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

const escapeHtml = (text) => String(text).replaceAll(/[&<>"]/g, (character) => ESCAPES[character]);

/** Labels of the languages of code fences. */
const LANGUAGES = {
  bash: 'curl',
  typescript: 'TypeScript',
  python: 'Python',
};

/**
 * Renders a page.
 * @param page from `readSite`
 * @param site from `readSite`
 * @param assets addresses of the style, the script, the icon, the font and the search index
 * @returns `html`, and the page's `sections` for the search
 */
export function renderPage(page, site, assets) {
  const { body, headings } = renderMarkdown(page.markdown);
  return { html: shell({ page, site, assets, body, headings }), sections: sectionsOf(page, headings) };
}

/** The page for an address that does not exist. */
export function renderNotFound(site, assets) {
  const body = `<h1>Page not found</h1>
<p>There is no page at this address. Choose one from the list, or search for it.</p>`;
  const page = { title: 'Page not found', summary: '', address: null };
  return shell({ page, site, assets, body, headings: [] });
}

function shell({ page, site, assets, body, headings }) {
  const { title, summary, address } = page;
  const twin = address === null ? '' : `${address}.md`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · ${SITE}</title>
${summary && `<meta name="description" content="${escapeHtml(summary)}">`}
<link rel="icon" href="${assets.icon}" type="image/svg+xml">
<link rel="preload" href="${assets.font}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${assets.style}">
${twin && `<link rel="alternate" href="${twin}" type="text/markdown">`}
<script type="module" src="${assets.script}"></script>
</head>
<body>
<a class="skip" href="#docs-content">Skip to content</a>
<header class="top">
<button class="open-pages" type="button" popovertarget="docs-pages">Pages</button>
<a class="home" href="/docs/guides">${SITE}</a>
<search id="docs-search" data-index="${assets.index}" hidden>
<label class="hidden" for="docs-query">Search the documentation</label>
<input id="docs-query" type="search" placeholder="Search" autocomplete="off" spellcheck="false" role="combobox" aria-expanded="false" aria-autocomplete="list" aria-controls="docs-hits">
<div id="docs-hits" role="listbox" aria-label="Results" hidden></div>
<p id="docs-hit-count" class="hidden" role="status"></p>
</search>
<a class="portal" href="/">Portal</a>
</header>
<div class="frame">
<nav id="docs-pages" popover aria-label="Documentation">
${site.groups.map((group) => navigation(group, address, headings)).join('\n')}
</nav>
<main id="docs-content" tabindex="-1">
${body}
${twin && `<footer><a href="${twin}">This page as Markdown</a> <a href="/llms.txt">llms.txt</a></footer>`}
</main>
</div>
</body>
</html>
`;
}

/** The pages of a group. The current one lists its sections. */
function navigation({ label, pages }, current, headings) {
  const [first] = pages;
  const items = pages.map((page) => {
    const isCurrent = page.address === current;
    const isOverview = page === first && label !== 'More';
    const name = isOverview ? 'Overview' : page.title;
    // The sections of an overview are the pages below it.
    const inside = isCurrent && !isOverview ? sectionList(headings) : '';
    return `<li><a href="${page.address}"${isCurrent ? ' aria-current="page"' : ''}>${inline(name)}</a>${inside}</li>`;
  });
  return `<h2>${label}</h2>\n<ul>${items.join('\n')}</ul>`;
}

function sectionList(headings) {
  const items = headings
    .filter(({ depth }) => depth === 2)
    .map(({ id, text }) => `<li><a href="#${id}">${inline(text)}</a></li>`);
  return items.length < 2 ? '' : `<ul>${items.join('')}</ul>`;
}

const inline = (markdown) => escapeHtml(plain(markdown));

/** A sample of a call in every language, which readers switch between. */
const SAMPLE = Object.keys(LANGUAGES);

/** Renders Markdown, with ids on its headings, and collects each section's text for the search. */
function renderMarkdown(markdown) {
  const marked = new Marked({ gfm: true, renderer: RENDERER });
  const tokens = marked.lexer(markdown).filter(({ type }) => type !== 'space');
  const ids = new Set();
  const headings = [];
  const html = [];
  let anchor = null;
  let isErrorList = false;
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    const samples = tokens.slice(at, at + SAMPLE.length);
    const [, given] = /^<a id="([\w-]+)"><\/a>$/.exec(token.raw.trim()) ?? [];
    const [, method, path] = /^`(GET|POST|PUT|PATCH|DELETE) ([^`]+)`$/.exec(token.raw.trim()) ?? [];
    if (given !== undefined) {
      anchor = given;
    } else if (token.type === 'heading') {
      const id = unique(anchor ?? slugOf(token.text), ids);
      anchor = null;
      headings.push({ id, depth: token.depth, text: token.text, said: [] });
      html.push(`<h${token.depth} id="${id}">${marked.parseInline(token.text)}</h${token.depth}>\n`);
    } else if (samples.map(({ lang }) => lang).join() === SAMPLE.join()) {
      html.push(tabs(samples, html.length));
      at += SAMPLE.length - 1;
    } else if (method !== undefined) {
      html.push(`<p class="call"><span>${method}</span> <code>${escapeHtml(path)}</code></p>\n`);
    } else {
      // Every operation lists the same errors, which would hide the page that explains one.
      if (token.type === 'html') isErrorList = token.raw.includes('<summary>Errors</summary>');
      else if (token.type !== 'code' && !isErrorList)
        headings.at(-1)?.said.push(plain(token.raw.replaceAll(/[|]|-{3,}/g, ' ')));
      html.push(marked.parser([token]));
    }
  }
  return { body: html.join(''), headings };
}

const RENDERER = {
  link({ href, tokens }) {
    return `<a href="${escapeHtml(pageLink(href))}">${this.parser.parseInline(tokens)}</a>`;
  },
  codespan({ text }) {
    return `<code>${escapeHtml(text).replaceAll(/[._/](?=\w)/g, '$&<wbr>')}</code>`;
  },
  code({ text, lang }) {
    return figure(text, lang);
  },
  table({ header, rows }) {
    const cells = (row, tag) =>
      row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('');
    const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
    return `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
<thead><tr>${cells(header, 'th')}</tr></thead>
<tbody>${body}</tbody></table></div>\n`;
  },
};

/** Links to a Markdown twin become links to its page. */
function pageLink(href) {
  return href.startsWith('/docs/') ? href.replace(/\.md(?=#|$)/, '') : href;
}

function figure(text, language) {
  return `<figure class="code" data-language="${escapeHtml(language)}"><pre tabindex="0"><code>${escapeHtml(text)}</code></pre></figure>\n`;
}

/** Radio buttons, so that the tabs work without a script. */
function tabs(samples, number) {
  const radios = samples.map(
    ({ lang }, index) =>
      `<label><input type="radio" name="sample-${number}" value="${lang}"${index === 0 ? ' checked' : ''}>${LANGUAGES[lang]}</label>`,
  );
  return `<fieldset class="samples"><legend class="hidden">Language of the sample</legend>
<div class="languages">${radios.join('')}</div>
${samples.map(({ text, lang }) => figure(text, lang)).join('')}</fieldset>\n`;
}

/** The id that GitHub gives a heading, so that a link works there and here. */
function slugOf(heading) {
  return plain(heading)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function unique(id, ids) {
  let found = id;
  for (let number = 1; ids.has(found); number++) found = `${id}-${number}`;
  ids.add(found);
  return found;
}

/** Longer texts would make the index large. Their first words say what the section is about. */
const MAX_TEXT = 1_200;

/** The search index has an entry per section. Sections of level 3 and below belong to the one above them. */
function sectionsOf({ title, address }, headings) {
  const sections = [];
  for (const { id, depth, text, said } of headings) {
    const words = [...(depth > 2 ? [plain(text)] : []), ...said].join(' ');
    const last = sections.at(-1);
    if (depth > 2 && last !== undefined) last.text = `${last.text} ${words}`.slice(0, MAX_TEXT);
    else
      sections.push({
        page: plain(title),
        heading: depth === 1 ? '' : plain(text),
        url: depth === 1 ? address : `${address}#${id}`,
        text: words.slice(0, MAX_TEXT),
      });
  }
  return sections;
}
