import { adminSample, samplesOf } from './samples.mjs';

const slug = (text) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** The page of a tag. Its name is the label, so that the address says `top-ups` and not `topups`. */
const pageOf = (api, tag) => `${slug(api.labelOf(tag))}.md`;

/** Types of events have a page of their own, because `events.md` describes the calls of the feed. */
const EVENT_TYPES = 'event-types.md';

/** The two references: for partners, and for the portal team. `docs` leads from the pages to the folder docs/. */
const PARTNER = {
  folder: 'docs/reference',
  title: 'API reference',
  source: 'partner.json',
  docs: '..',
  samplesOf,
  note: `The examples show real responses of the service to the call above them. Only ids, times, cursors and install data
are made up. Samples read \`ESIM_BASE_URL\` and \`ESIM_API_KEY\`, as in the [quick start](../guides/quick-start.md).`,
  end: 'To use other tools, see [OpenAPI, Postman and AI tools](../guides/tools.md).',
};
const ADMIN = {
  folder: 'docs/reference/admin',
  title: 'Admin API reference',
  source: 'admin.json',
  docs: '../..',
  samplesOf: adminSample,
  note: `Samples read \`ADMIN_URL\` and \`ADMIN_TOKEN\`. With \`npm start\`, set them in the folder of the clone:

\`\`\`bash
export ADMIN_URL=http://127.0.0.1:3001
export ADMIN_TOKEN=$(sed -n 's/^ADMIN_TOKENS=portal://p' .data/secrets.env)
\`\`\``,
  end: 'The listener of the admin API also serves its [OpenAPI document](../../openapi/admin.json), at `/openapi/admin.json`.',
};

/**
 * Renders docs/reference: an overview, one page per tag, and one with the types of events. Each operation has its
 * `operationId` as anchor, on its page and in the overview.
 */
export function renderReference(api) {
  return { ...render(api, PARTNER), [`${PARTNER.folder}/${EVENT_TYPES}`]: eventTypes(api) };
}

/** Renders docs/reference/admin, like the reference for partners. */
export function renderAdminReference(api) {
  return render(api, ADMIN);
}

function render(api, reference) {
  const groups = [...api.operationsByTag()];
  return Object.fromEntries([
    [`${reference.folder}/README.md`, overview(api, groups, reference)],
    ...groups.map(([tag, operations]) => [
      `${reference.folder}/${pageOf(api, tag)}`,
      tagPage(api, tag, operations, reference),
    ]),
  ]);
}

const written = (source) => `<!-- Written by \`npm run generate\` from docs/openapi/${source}. -->`;

function overview(api, groups, reference) {
  return page(
    `# ${reference.title}`,
    written(reference.source),
    api.document.info.description,
    reference.note,
    ...groups.flatMap(([tag, operations]) => [
      `## [${api.labelOf(tag)}](${pageOf(api, tag)})`,
      tagDescription(api, tag),
      table(
        ['call', 'address'],
        operations.map(({ operationId, summary, method, path }) => [
          `${anchor(operationId)}[${summary}](${pageOf(api, tag)}#${operationId})`,
          `\`${method.toUpperCase()} ${path}\``,
        ]),
      ),
    ]),
    ...(api.document.webhooks === undefined ? [] : [eventList(api)]),
    '## Errors',
    `Every error has a code. [Errors](${reference.docs}/errors.md) has the cause and the cure of each.`,
    reference.end,
  );
}

function eventList(api) {
  const types = Object.keys(api.document.webhooks).map(
    (type) => `- ${anchor(`event-${slug(type)}`)}[\`${type}\`](${EVENT_TYPES}#${slug(type)})`,
  );
  return page(
    `## [Event types](${EVENT_TYPES})`,
    'The body of each webhook. The feed returns the same objects.',
    types.join('\n'),
  );
}

function tagPage(api, tag, operations, reference) {
  return page(
    `# ${api.labelOf(tag)}`,
    written(reference.source),
    tagDescription(api, tag),
    ...operations.map((operation) => operationSection(api, operation, reference)),
  );
}

function tagDescription(api, tag) {
  return api.document.tags.find(({ name }) => name === tag)?.description ?? '';
}

function operationSection(api, operation, { docs, samplesOf: samples }) {
  const { method, path, operationId, summary, description } = operation;
  const body = api.bodyOf(operation);
  return page(
    anchor(operationId),
    `## ${summary}`,
    `\`${method.toUpperCase()} ${path}\``,
    description,
    parametersTable(api, operation),
    ...(body ? ['### Body', cell(api.follow(body.schema).description), fieldsTable(api, body.schema)] : []),
    '### Call',
    ...Object.entries(samples(api, operation)).map(([language, text]) => fence(language, text)),
    ...successes(api, operation),
    errorList(api, operation, docs),
  );
}

function parametersTable(api, operation) {
  const rows = api.parametersOf(operation).map((parameter) => {
    const schema = api.follow(parameter.schema ?? {});
    return [
      `\`${parameter.name}\`${parameter.required ? '' : ' (optional)'}`,
      parameter.in,
      typeText(api, schema),
      meaning(parameter.description ?? schema.description, schema),
    ];
  });
  return rows.length === 0 ? '' : page('### Parameters', table(['name', 'in', 'type', 'meaning'], rows));
}

function successes(api, operation) {
  return api
    .responsesOf(operation)
    .filter(({ status }) => Number(status) < 400)
    .flatMap(({ status, description, content }) => {
      const { schema, example } = content?.['application/json'] ?? {};
      const fields = schema ? fieldsTable(api, schema) : '';
      return [
        `### Response ${status}`,
        description,
        example === undefined ? '' : fence('json', json(example)),
        fields && details('Fields', fields),
      ];
    });
}

function errorList(api, operation, docs) {
  const codes = api
    .errorsOf(operation)
    .map(({ status, code }) => `${status} [\`${code}\`](${docs}/errors.md#${code})`);
  return details('Errors', codes.join(' · '));
}

function eventTypes(api) {
  const types = Object.entries(api.document.webhooks);
  const [[, { post: first }]] = types;
  return page(
    '# Event types',
    written(PARTNER.source),
    first.description,
    'The [webhook reference](../webhooks.md) describes signatures, retries and the order of deliveries.',
    table(
      ['header', 'meaning'],
      first.parameters.map(({ name, description }) => [`\`${name}\``, cell(description)]),
    ),
    ...types.map(([type, { post }]) => {
      const { schema, example } = post.requestBody.content['application/json'];
      return page(
        anchor(slug(type)),
        `## ${type}`,
        post.summary,
        fence('json', json(example)),
        details('Fields', fieldsTable(api, schema)),
      );
    }),
  );
}

/** Deep enough for every object of the API. It stops at recursive schemas. */
const MAX_DEPTH = 6;

/** A schema's fields as a table. Nested fields are `parent.child` and `list[].child`. */
function fieldsTable(api, schema) {
  const rows = rowsOf(api, schema, '', 0);
  return rows.length === 0 ? '' : table(['field', 'type', 'meaning'], rows);
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
    const mark = required.has(name) ? '' : ' (optional)';
    return [[`\`${path}\`${mark}`, typeText(api, field), meaning(field.description, field)], ...inner];
  });
}

/** @returns the schema's object, including one that may be null */
function objectIn(api, reference) {
  const schema = api.follow(reference);
  if (schema?.properties) return schema;
  const choices = [...(schema?.anyOf ?? []), ...(schema?.allOf ?? [])].map((choice) => api.follow(choice));
  return choices.find((choice) => choice.properties) ?? null;
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

function meaning(description, schema) {
  return [cell(description), bounds(schema)].filter(Boolean).join(' ');
}

/** Describes a value's limits. */
function bounds(field) {
  const values = (field.enum ?? []).filter((value) => value !== null);
  const parts = [
    values.length > 0 && `One of ${values.map((value) => `\`${value}\``).join(', ')}.`,
    field.minimum !== undefined && field.maximum !== undefined && `${field.minimum} to ${field.maximum}.`,
    field.minimum !== undefined && field.maximum === undefined && `At least ${field.minimum}.`,
    field.maxLength !== undefined && `At most ${field.maxLength} characters.`,
    field.pattern !== undefined && `Matches \`${field.pattern.replaceAll('|', '\\|')}\`.`,
  ];
  return parts.filter(Boolean).join(' ');
}

const page = (...blocks) =>
  `${blocks
    .filter(Boolean)
    .map((block) => block.trim())
    .join('\n\n')}\n`;

const anchor = (id) => `<a id="${id}"></a>`;

const cell = (text) => (text ?? '').replaceAll(/\s*\n\s*/g, ' ');

const fence = (language, text) => `\`\`\`${language}\n${text}\n\`\`\``;

const details = (summary, content) => `<details>\n<summary>${summary}</summary>\n\n${content}\n\n</details>`;

const table = (heads, rows) =>
  [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** Longer lists of plain values, such as the countries of a package, fill lines of this width. */
const LINE = 96;

/** JSON with one field per line. Small objects and lists of plain values stay on as few lines as possible. */
function json(value, indent = '') {
  const inner = `${indent}  `;
  const line = oneLine(value);
  if (indent !== '' && isSmall(value) && indent.length + line.length <= LINE) return line;
  if (Array.isArray(value) && value.length > 0)
    return value.every(isPlain)
      ? plainList(
          value.map((each) => JSON.stringify(each)),
          indent,
        )
      : `[\n${value.map((each) => inner + json(each, inner)).join(',\n')}\n${indent}]`;
  if (value !== null && typeof value === 'object' && Object.keys(value).length > 0)
    return `{\n${Object.entries(value)
      .map(([name, field]) => `${inner}${JSON.stringify(name)}: ${json(field, inner)}`)
      .join(',\n')}\n${indent}}`;
  return JSON.stringify(value);
}

const isPlain = (value) => value === null || typeof value !== 'object';

/** Whether a value is an object or list of plain values or of lists of them, such as an amount of money. */
function isSmall(value) {
  const inside = isPlain(value) ? [] : Object.values(value);
  return inside.every((each) => isPlain(each) || (Array.isArray(each) && each.every(isPlain)));
}

function oneLine(value) {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
  if (isPlain(value)) return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, field]) => `${JSON.stringify(name)}: ${oneLine(field)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

function plainList(items, indent) {
  const inner = `${indent}  `;
  const lines = [''];
  for (const item of items) {
    const line = lines.at(-1);
    if (line === '') lines[lines.length - 1] = item;
    else if (inner.length + line.length + item.length + 2 <= LINE) lines[lines.length - 1] += `, ${item}`;
    else lines.push(item);
  }
  return `[\n${lines.map((line) => inner + line).join(',\n')}\n${indent}]`;
}
