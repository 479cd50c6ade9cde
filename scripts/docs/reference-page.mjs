import { curlSample } from './curl-sample.mjs';
import { escapeHtml, inlineMarkdown, jsonBlock, codeBlock, markdown } from './html.mjs';
import { REFERENCE_STYLE } from './reference-style.mjs';
import { bounds, fieldsTable, typeText } from './schema-table.mjs';

/** A link to another file of docs/, as it is reached from docs/reference. */
const page = (file, label) => `<a href="${file.replace(/^docs/, '..')}">${label}</a>`;

const slug = (text) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** docs/reference/index.html: one page without scripts or outside files, so that it opens from a disk too. */
export function renderReference(api) {
  const { title, version, description } = api.document.info;
  return `<!doctype html>
<!-- Written by \`npm run docs\` from docs/openapi/partner.json. -->
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
<p>Each answer shown is one that the running service gave to the call above it; only ids, times, cursors and install data are made up.</p>
<p>More: ${page('docs/guides/quick-start.md', 'quick start')}, ${page('docs/webhooks.md', 'webhooks')},
${page('docs/errors.md', 'errors')}, ${page('docs/openapi/partner.json', 'OpenAPI document')},
${page('docs/postman.json', 'Postman collection')}.</p>
${[...api.operationsByTag()].map(([tag, operations]) => tagSection(api, tag, operations)).join('\n')}
${webhookSection(api)}
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
  const events = Object.keys(api.document.webhooks)
    .map((type) => `<li><a href="#event-${slug(type)}">${escapeHtml(type)}</a></li>`)
    .join('');
  return `${groups.join('\n')}<h2>Events</h2><ul>${events}</ul><h2><a href="#errors">Errors</a></h2>`;
}

function tagSection(api, tag, operations) {
  return `<section aria-labelledby="tag-${slug(tag)}">
<h2 id="tag-${slug(tag)}">${escapeHtml(api.labelOf(tag))}</h2>
${operations.map((operation) => operationArticle(api, operation)).join('\n')}
</section>`;
}

function operationArticle(api, operation) {
  const { method, path, operationId, summary, description } = operation;
  const body = api.bodyOf(operation);
  return `<article id="${operationId}">
<h3>${escapeHtml(summary)}</h3>
<p class="call"><span class="${method}">${method.toUpperCase()}</span> <code>${escapeHtml(path)}</code></p>
${description ? markdown(description) : ''}
${parametersTable(api, operation)}
${body ? `<h4>Body</h4>${bodyNote(api, body.schema)}${fieldsTable(api, body.schema)}` : ''}
${codeBlock(curlSample(api, operation), 'Call')}
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
      return `<h4>Answer ${status}</h4><p>${inlineMarkdown(description)}</p>
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
<table><thead><tr><th>status</th><th>code</th><th>what it says</th><th>retryable</th></tr></thead><tbody>${rows.join('')}</tbody></table></section>`;
}
