import { exampleOf } from './open-api.mjs';

/** Links to another file in docs/, relative to docs/reference. */
const page = (file, label) => `<a href="${file.replace(/^docs/, '..')}">${label}</a>`;

const slug = (text) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** The pages: document, shell variables of the calls, and what stands above the operations. */
const PARTNER = {
  document: 'docs/openapi/partner.json',
  url: '$ESIM_BASE_URL',
  token: '$ESIM_API_KEY',
  introduction:
    () => `<p>The examples show real responses of the service to the call above them. Only ids, times, cursors and install data are made up.</p>
<p>More: ${page('docs/guides/quick-start.md', 'quick start')}, ${page('docs/webhooks.md', 'webhooks')},
${page('docs/errors.md', 'errors')}, ${page('docs/openapi/partner.json', 'OpenAPI document')},
${page('docs/postman.json', 'Postman collection')}.</p>`,
};
const ADMIN = {
  document: 'docs/openapi/admin.json',
  url: '$ESIM_ADMIN_URL',
  token: '$ESIM_ADMIN_TOKEN',
  introduction: () => `<p>More: ${page('docs/guides/portal-team.md', "the portal team's tasks")},
${page('docs/operations.md', 'operations')}, ${page('docs/errors.md', 'errors')},
${page('docs/openapi/admin.json', 'OpenAPI document')}.</p>`,
};

/** Renders docs/reference/admin.html, the same page for the internal admin API. */
export function renderAdminReference(api) {
  return renderReference(api, ADMIN);
}

/**
 * Renders docs/reference/index.html, a single page without scripts or external files, so that it also works from disk.
 */
export function renderReference(api, kind = PARTNER) {
  const { title, version, description } = api.document.info;
  return `<!doctype html>
<!-- Written by \`npm run generate\` from ${kind.document}. -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${REFERENCE_STYLE}</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<nav aria-label="Reference">${navigation(api)}</nav>
<main id="content">
<h1>${escapeHtml(title)} <small>${escapeHtml(version)}</small></h1>
${markdown(description)}
${kind.introduction()}
${[...api.operationsByTag()].map(([tag, operations]) => tagSection(api, tag, operations, kind)).join('\n')}
${api.document.webhooks ? webhookSection(api) : ''}
${errorSection(api)}
</main>
</body>
</html>
`;
}

function navigation(api) {
  const groups = [...api.operationsByTag()].map(
    ([tag, operations]) =>
      `<h2>${escapeHtml(api.labelOf(tag))}</h2><ul>${operations
        .map(({ operationId, summary }) => `<li><a href="#${operationId}">${escapeHtml(summary)}</a></li>`)
        .join('')}</ul>`,
  );
  const events = Object.keys(api.document.webhooks ?? {})
    .map((type) => `<li><a href="#event-${slug(type)}">${escapeHtml(type)}</a></li>`)
    .join('');
  return `${groups.join('\n')}${events && `<h2>Events</h2><ul>${events}</ul>`}<h2><a href="#errors">Errors</a></h2>`;
}

function tagSection(api, tag, operations, kind) {
  return `<section aria-labelledby="tag-${slug(tag)}">
<h2 id="tag-${slug(tag)}">${escapeHtml(api.labelOf(tag))}</h2>
${operations.map((operation) => operationArticle(api, operation, kind)).join('\n')}
</section>`;
}

function operationArticle(api, operation, kind) {
  const { method, path, operationId, summary, description } = operation;
  const body = api.bodyOf(operation);
  return `<article id="${operationId}">
<h3>${escapeHtml(summary)}</h3>
<p class="call"><span class="${method}">${method.toUpperCase()}</span> <code>${escapeHtml(path)}</code></p>
${description ? markdown(description) : ''}
${parametersTable(api, operation)}
${body ? `<h4>Body</h4>${bodyNote(api, body.schema)}${fieldsTable(api, body.schema)}` : ''}
${codeBlock(curlSample(api, operation, kind), 'Call')}
${answers(api, operation)}
${errorList(api, operation)}
</article>`;
}

function bodyNote(api, schema) {
  const { description } = api.follow(schema);
  return description ? `<p>${inlineMarkdown(description)}</p>` : '';
}

function parametersTable(api, operation) {
  const rows = api.parametersOf(operation).map((parameter) => {
    const schema = api.follow(parameter.schema ?? {});
    const mark = parameter.required ? '' : ' <small>optional</small>';
    const text = parameter.description ?? schema.description;
    const meaning = [text && inlineMarkdown(text), bounds(schema)].filter(Boolean).join(' ');
    return `<tr><td><code>${escapeHtml(parameter.name)}</code>${mark}</td><td>${escapeHtml(parameter.in)}</td><td>${escapeHtml(typeText(api, schema))}</td><td>${meaning}</td></tr>`;
  });
  if (rows.length === 0) return '';
  return `<h4>Parameters</h4><table><thead><tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
}

function answers(api, operation) {
  return api
    .responsesOf(operation)
    .filter(({ status }) => Number(status) < 400)
    .map(({ status, description, content }) => {
      const { schema, example } = content?.['application/json'] ?? {};
      const table = schema ? fieldsTable(api, schema) : '';
      return `<h4>Response ${status}</h4><p>${inlineMarkdown(description)}</p>
${example === undefined ? '' : jsonBlock(example, `${status}`)}
${table && `<details><summary>Fields</summary>${table}</details>`}`;
    })
    .join('\n');
}

function errorList(api, operation) {
  const codes = api
    .errorsOf(operation)
    .map(({ status, code }) => `<li>${status} <a href="#error-${code}"><code>${code}</code></a></li>`)
    .join('');
  return `<details><summary>Errors</summary><ul class="codes">${codes}</ul></details>`;
}

function webhookSection(api) {
  const articles = Object.entries(api.document.webhooks).map(([type, { post }]) => {
    const { schema, example } = post.requestBody.content['application/json'];
    return `<article id="event-${slug(type)}"><h3>${escapeHtml(type)}</h3><p>${inlineMarkdown(post.summary)}</p>
${jsonBlock(example, 'Body')}<details><summary>Fields</summary>${fieldsTable(api, schema)}</details></article>`;
  });
  const [{ post }] = Object.values(api.document.webhooks);
  const headers = post.parameters.map(
    ({ name, description }) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${inlineMarkdown(description)}</td></tr>`,
  );
  return `<section aria-labelledby="events"><h2 id="events">Events</h2>${markdown(post.description)}
<table><thead><tr><th>header</th><th>meaning</th></tr></thead><tbody>${headers.join('')}</tbody></table>
${articles.join('\n')}</section>`;
}

function errorSection(api) {
  const codes = [
    ...new Set(api.operations().flatMap((operation) => api.errorsOf(operation).map(({ code }) => code))),
  ];
  const rows = codes
    .map((code) => api.problemOf(code))
    .toSorted((a, b) => a.status - b.status)
    .map(
      ({ code, status, title, retryable }) =>
        `<tr id="error-${code}"><td>${status}</td><td>${page(`docs/errors.md#${code}`, `<code>${code}</code>`)}</td><td>${escapeHtml(title)}</td><td>${retryable ? 'yes' : 'no'}</td></tr>`,
    );
  return `<section aria-labelledby="errors"><h2 id="errors">Errors</h2>
<p>Cause and cure of each: ${page('docs/errors.md', 'errors')}.</p>
<table><thead><tr><th>status</th><th>code</th><th>title</th><th>retryable</th></tr></thead><tbody>${rows.join('')}</tbody></table></section>`;
}

/** The query that test/docs/recorded-answers.test.ts uses. */
const SHOWN = { country: 'FR', limit: 2 };

/** A command to paste. It uses the variables of the quick start, which the SDK and the CLI also read. */
function curlSample(api, operation, { url, token }) {
  const parameters = api.parametersOf(operation);
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const parameter = parameters.find((candidate) => candidate.in === 'path' && candidate.name === name);
    return exampleOf(parameter ?? {}) ?? `{${name}}`;
  });
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.name in SHOWN)
    .map(({ name }) => `${name}=${SHOWN[name]}`);
  const search = query.length === 0 ? '' : `?${query.join('&')}`;
  const body = api.bodyOf(operation)?.example;
  // With a body, curl sends a POST by default.
  const isSaid = operation.method === 'get' || (operation.method === 'post' && body !== undefined);
  return [
    `curl -s ${isSaid ? '' : `-X ${operation.method.toUpperCase()} `}-H "Authorization: Bearer ${token}"`,
    ...(operation.method === 'post' ? ['-H "Idempotency-Key: $(date +%s)-$RANDOM"'] : []),
    `"${url}${path}${search}"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`]),
  ].join(' \\\n  ');
}

/** Deep enough for every object of the API. It stops at recursive schemas. */
const MAX_DEPTH = 6;

/** Renders a schema's fields as a table, one row per field. Nested fields are `parent.child` and `list[].child`. */
function fieldsTable(api, schema) {
  const rows = rowsOf(api, schema, '', 0);
  if (rows.length === 0) return '';
  return `<table><thead><tr><th>field</th><th>type</th><th>meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
}

function rowsOf(api, reference, prefix, depth) {
  const schema = objectIn(api, reference);
  if (schema === null || depth > MAX_DEPTH) return [];
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const field = api.follow(property);
    const path = `${prefix}${name}`;
    const isList = typeNames(field).includes('array');
    const inner = isList
      ? rowsOf(api, field.items, `${path}[].`, depth + 1)
      : rowsOf(api, field, `${path}.`, depth + 1);
    return [row(path, field, required.has(name), api), ...inner];
  });
}

/** @returns the schema's object, including one that may be null */
function objectIn(api, reference) {
  const schema = api.follow(reference);
  if (schema?.properties) return schema;
  const choices = [...(schema?.anyOf ?? []), ...(schema?.allOf ?? [])].map((choice) => api.follow(choice));
  return choices.find((choice) => choice.properties) ?? null;
}

function row(path, field, required, api) {
  const meaning = [field.description && inlineMarkdown(field.description), bounds(field)]
    .filter(Boolean)
    .join(' ');
  const mark = required ? '' : ' <small>optional</small>';
  return `<tr><td><code>${escapeHtml(path)}</code>${mark}</td><td>${escapeHtml(typeText(api, field))}</td><td>${meaning}</td></tr>`;
}

function typeNames(field) {
  return [field.type ?? []].flat();
}

/** `string, may be null`. For a list, includes the type of its items. */
function typeText(api, field) {
  const choices = (field.anyOf ?? []).map((choice) => api.follow(choice));
  const names = field.anyOf ? choices.flatMap(typeNames) : typeNames(field);
  const shown = names.filter((name) => name !== 'null');
  const base = shown.includes('array')
    ? `list of ${typeText(api, api.follow(field.items ?? {}))}`
    : shown.join(' or ');
  const format = field.format === 'date-time' ? 'time' : base || 'object';
  return names.includes('null') ? `${format}, may be null` : format;
}

/** Describes a value's limits. */
function bounds(field) {
  const values = (field.enum ?? []).filter((value) => value !== null);
  const parts = [
    values.length > 0 && `One of ${values.map((value) => `<code>${escapeHtml(value)}</code>`).join(', ')}.`,
    field.minimum !== undefined && field.maximum !== undefined && `${field.minimum} to ${field.maximum}.`,
    field.minimum !== undefined && field.maximum === undefined && `At least ${field.minimum}.`,
    field.maxLength !== undefined && `At most ${field.maxLength} characters.`,
    field.pattern !== undefined && `Matches <code>${escapeHtml(field.pattern)}</code>.`,
  ];
  return parts.filter(Boolean).join(' ');
}

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

const escapeHtml = (text) => String(text).replaceAll(/[&<>"]/g, (character) => ESCAPES[character]);

/** Renders code spans and bold, the only inline Markdown in the document's descriptions. */
function inlineMarkdown(text) {
  return escapeHtml(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
}

/** Renders paragraphs and lists. */
function markdown(text) {
  return text
    .split(/\n{2,}/)
    .map((block) =>
      block.startsWith('- ')
        ? `<ul>${block
            .slice(2)
            .split(/\n- /)
            .map((item) => `<li>${inlineMarkdown(item.replaceAll(/\n\s*/g, ' '))}</li>`)
            .join('')}</ul>`
        : `<p>${inlineMarkdown(block)}</p>`,
    )
    .join('\n');
}

const codeBlock = (text, label) =>
  `<figure><figcaption>${escapeHtml(label)}</figcaption><pre><code>${escapeHtml(text)}</code></pre></figure>`;

const jsonBlock = (value, label) => codeBlock(JSON.stringify(value, null, 2), label);

/** The page's styles. Colors follow the reader's system. */
const REFERENCE_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dee6, #3a4450); --soft: light-dark(#f4f6f9, #1b222a);
  --text: light-dark(#1a2230, #e4e9f0); --quiet: light-dark(#536070, #a0acba); --link: light-dark(#0b57a4, #7db8f5);
  --ground: light-dark(#ffffff, #11161c); }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr); background: var(--ground);
  color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1rem 1.25rem; border-right: 1px solid var(--line);
  font-size: .875rem; }
nav h2 { margin: 1rem 0 .25rem; font-size: .875rem; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: block; padding: .125rem 0; }
main { padding: 1.5rem 2rem 6rem; max-width: 60rem; }
a { color: var(--link); }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--ground); padding: .5rem; }
h1 small, td small { color: var(--quiet); font-weight: normal; font-size: .8em; }
h2 { margin-top: 3rem; }
article { border-top: 1px solid var(--line); padding-top: .5rem; margin-top: 2rem; scroll-margin-top: 1rem; }
h4 { margin: 1.25rem 0 .25rem; }
code, pre { font: .875em/1.5 ui-monospace, monospace; }
td code, .call code { overflow-wrap: anywhere; }
figure { margin: .75rem 0; border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
figcaption { padding: .25rem .75rem; background: var(--soft); color: var(--quiet); font-size: .8rem; }
pre { margin: 0; padding: .75rem; overflow-x: auto; max-height: 28rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; }
.call span { display: inline-block; min-width: 3.5rem; font-weight: 700; }
.codes { columns: 18rem; }
summary { cursor: pointer; color: var(--link); margin: .5rem 0; }
:target { outline: 2px solid var(--link); outline-offset: 4px; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border-right: 0; } main { padding: 1rem; } }
`;
