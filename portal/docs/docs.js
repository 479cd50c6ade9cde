// Search, one language for all samples, and copy buttons. The pages work without it.

const LANGUAGE = 'docs-language';
const MAX_HITS = 8;
const SNIPPET = 120;

const search = document.querySelector('#docs-search');
const input = document.querySelector('#docs-query');
const list = document.querySelector('#docs-hits');
const count = document.querySelector('#docs-hit-count');

/** The index is a few dozen kilobytes, so it loads with the first use of the search. */
let index = null;
const loadIndex = () => (index ??= fetch(search.dataset.index).then((response) => response.json()));

const words = (text) =>
  text
    .toLowerCase()
    .split(/[^\p{L}\p{N}_./{}-]+/u)
    .filter(Boolean);

/** Null if a word does not occur. A word in a heading counts more than one in the text. */
function scoreOf(section, asked) {
  let score = 0;
  const [page, heading, text] = [section.page, section.heading, section.text].map((each) =>
    each.toLowerCase(),
  );
  for (const word of asked) {
    const found =
      (words(heading).includes(word) ? 30 : 0) +
      (heading.includes(word) ? 10 : 0) +
      (page.includes(word) ? 6 : 0) +
      (text.includes(word) ? 1 : 0);
    if (found === 0) return null;
    score += found;
  }
  return score;
}

function find(sections, asked) {
  return sections
    .map((section) => ({ section, score: scoreOf(section, asked) }))
    .filter(({ score }) => score !== null)
    .sort((a, b) => b.score - a.score)
    .slice(0, MAX_HITS)
    .map(({ section }) => section);
}

/** The part of the text around the first word. */
function snippet({ text }, [word]) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 30);
  const from = at === 0 ? 0 : text.indexOf(' ', at) + 1;
  const to = text.length <= from + SNIPPET ? text.length : text.lastIndexOf(' ', from + SNIPPET);
  return `${from > 0 ? '… ' : ''}${text.slice(from, to)}${to < text.length ? ' …' : ''}`;
}

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function show(hits, asked) {
  list.replaceChildren(
    ...hits.map((section, number) => {
      const hit = element('a', 'hit', '');
      hit.href = section.url;
      hit.id = `docs-hit-${number}`;
      hit.setAttribute('role', 'option');
      hit.tabIndex = -1;
      hit.append(
        element('strong', '', section.heading || section.page),
        element('small', '', section.heading ? section.page : ''),
        element('span', '', snippet(section, asked)),
      );
      return hit;
    }),
  );
  if (asked.length > 0 && hits.length === 0)
    list.append(element('p', 'none', 'Nothing found. Try fewer words.'));
  const isOpen = asked.length > 0;
  list.hidden = !isOpen;
  input.setAttribute('aria-expanded', String(isOpen && hits.length > 0));
  count.textContent = isOpen ? `${hits.length} ${hits.length === 1 ? 'result' : 'results'}` : '';
  select(hits.length > 0 ? 0 : -1);
}

function select(number) {
  const hits = [...list.querySelectorAll('.hit')];
  for (const [at, hit] of hits.entries()) hit.setAttribute('aria-selected', String(at === number));
  if (number < 0) input.removeAttribute('aria-activedescendant');
  else {
    input.setAttribute('aria-activedescendant', hits[number].id);
    hits[number].scrollIntoView({ block: 'nearest' });
  }
}

function close() {
  list.hidden = true;
  input.setAttribute('aria-expanded', 'false');
  input.removeAttribute('aria-activedescendant');
}

async function update() {
  const asked = words(input.value);
  const sections = await loadIndex();
  if (asked.join() === words(input.value).join())
    show(asked.length === 0 ? [] : find(sections, asked), asked);
}

const selected = () => [...list.querySelectorAll('.hit')].findIndex((hit) => hit.ariaSelected === 'true');

function onKey(event) {
  const hits = list.querySelectorAll('.hit');
  if (event.key === 'Escape') close();
  if (list.hidden || hits.length === 0) return;
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps) {
    event.preventDefault();
    select((selected() + steps[event.key] + hits.length) % hits.length);
  } else if (event.key === 'Enter') {
    event.preventDefault();
    hits[Math.max(0, selected())].click();
    close();
  }
}

search.hidden = false;
input.addEventListener('focus', () => void loadIndex(), { once: true });
input.addEventListener('input', () => void update());
input.addEventListener('keydown', onKey);
document.addEventListener('click', (event) => {
  if (!search.contains(event.target)) close();
  // A link to a section of this page leaves the list of pages open otherwise.
  else if (event.target.closest('.hit')) close();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea, select')) return;
  event.preventDefault();
  input.focus();
});

/** Null also if the browser forbids storage. */
function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The choice then lasts for this page.
  }
}

// The theme that the reader chose in the portal.
document.documentElement.dataset.theme = stored('theme') ?? 'system';

function choose(language) {
  for (const radio of document.querySelectorAll('.samples input')) radio.checked ||= radio.value === language;
}

const language = stored(LANGUAGE);
if (language !== null) choose(language);
document.addEventListener('change', (event) => {
  if (!event.target.closest('.samples')) return;
  // The samples above change their height, so keep the clicked one in place.
  const before = event.target.getBoundingClientRect().top;
  choose(event.target.value);
  window.scrollBy({ top: event.target.getBoundingClientRect().top - before, behavior: 'instant' });
  keep(LANGUAGE, event.target.value);
});

for (const figure of document.querySelectorAll('figure.code')) {
  const button = element('button', 'copy', 'Copy');
  button.type = 'button';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(figure.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2_000);
  });
  figure.append(button);
}

const pages = document.querySelector('#docs-pages');
pages.addEventListener('click', (event) => {
  if (event.target.closest('a') && pages.matches(':popover-open')) pages.hidePopover();
});
const current = pages.querySelector('[aria-current]');
if (current !== null) pages.scrollTop = current.offsetTop - pages.clientHeight / 3;
