import { escapeHtml, inlineMarkdown } from './html.mjs';

/** Deep enough for every object of the API, and an end for a schema that contains itself. */
const MAX_DEPTH = 6;

/** The fields of a schema as a table, one row for each, nested ones as `parent.child` and `list[].child`. */
export function fieldsTable(api, schema) {
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

/** The object that a schema is, or the one that it may be beside null. */
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

/** `string, may be null`; a list says of what. */
export function typeText(api, field) {
  const choices = (field.anyOf ?? []).map((choice) => api.follow(choice));
  const names = field.anyOf ? choices.flatMap(typeNames) : typeNames(field);
  const shown = names.filter((name) => name !== 'null');
  const base = shown.includes('array')
    ? `list of ${typeText(api, api.follow(field.items ?? {}))}`
    : shown.join(' or ');
  const format = field.format === 'date-time' ? 'time' : base || 'object';
  return names.includes('null') ? `${format}, may be null` : format;
}

/** The limits of a value in words. */
export function bounds(field) {
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
