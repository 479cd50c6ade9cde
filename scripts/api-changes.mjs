// Compares the OpenAPI documents with those of the last release (docs/openapi/released) and lists each change that
// breaks the promise of docs/guides/versioning.md: requests may require less but never more, and responses may contain
// more but never less. `node scripts/api-changes.mjs` exits with 1 if there is one. `--release` copies the documents to the
// last release; add an entry to CHANGELOG.md.
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';

const FOLDER = path.resolve(import.meta.dirname, '../docs/openapi');
const DOCUMENTS = ['partner.json', 'admin.json'];
const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];
/** Limits of request values. Each function returns whether `next` is stricter than `before`. */
const BOUNDS = {
  maximum: (before, next) => next < before,
  exclusiveMaximum: (before, next) => next < before,
  maxLength: (before, next) => next < before,
  maxItems: (before, next) => next < before,
  maxProperties: (before, next) => next < before,
  minimum: (before, next) => next > before,
  exclusiveMinimum: (before, next) => next > before,
  minLength: (before, next) => next > before,
  minItems: (before, next) => next > before,
  minProperties: (before, next) => next > before,
  multipleOf: (before, next) => next !== before,
  pattern: (before, next) => spelled(next) !== spelled(before),
  format: (before, next) => next !== before,
};
/** Formats that only tell generators how to store an integer. The service accepts the same numbers. */
const WIDTHS = ['int32', 'int64'];
const CODES = /\.code$/;

/** @returns one line per change that would break a client written for `before` */
function breakingChanges(before, next) {
  const found = [];
  const compare = new Comparison(before, next, (where, what) => found.push(`${where}: ${what}`));
  compare.operations();
  // The service sends webhooks, so their bodies are compared like responses.
  compare.webhooks();
  return [...new Set(found)];
}

class Comparison {
  constructor(before, next, report) {
    this.before = before;
    this.next = next;
    this.report = report;
    /** Pairs of references being compared, because schemas may be recursive. */
    this.open = new Set();
  }

  operations() {
    const next = withoutNames(this.next.paths);
    for (const [path, methods] of Object.entries(this.before.paths)) {
      for (const method of METHODS.filter((each) => methods[each])) {
        const where = `${method.toUpperCase()} ${path}`;
        const operation = next[withoutName(path)]?.[method];
        if (!operation) this.report(where, 'the operation was removed');
        else this.operation(where, methods[method], operation);
      }
    }
  }

  operation(where, before, next) {
    this.parameters(where, before.parameters ?? [], next.parameters ?? []);
    this.requestBody(where, before.requestBody, next.requestBody);
    for (const [status, answer] of Object.entries(before.responses ?? {})) {
      // The responses for server errors may change.
      if (status.startsWith('5')) continue;
      if (!next.responses?.[status]) this.report(where, `it no longer returns ${status}`);
      else this.contents(`${where} ${status}`, this.old(answer), this.new(next.responses[status]), 'answer');
    }
  }

  webhooks() {
    for (const [type, { post }] of Object.entries(this.before.webhooks ?? {})) {
      const operation = this.next.webhooks?.[type]?.post;
      if (operation) this.webhook(`webhook ${type}`, post, operation);
      else this.report(`webhook ${type}`, 'the event was removed');
    }
  }

  webhook(where, before, next) {
    const kept = new Set((next.parameters ?? []).map((each) => this.new(each).name));
    for (const { name } of (before.parameters ?? []).map((each) => this.old(each)))
      if (!kept.has(name)) this.report(where, `the header ${name} was removed`);
    this.contents(where, this.old(before.requestBody), this.new(next.requestBody), 'answer');
  }

  parameters(where, before, next) {
    // Ignore the name of a path placeholder, because clients never send it.
    const key = ({ in: place, name }) => (place === 'path' ? 'path' : `${place} parameter ${name}`);
    const known = new Map(before.map((each) => this.old(each)).map((each) => [key(each), each]));
    const now = new Map(next.map((each) => this.new(each)).map((each) => [key(each), each]));
    for (const [name, parameter] of now) {
      if (parameter.required && !known.get(name)?.required) this.report(where, `${name} is now required`);
    }
    for (const [name, parameter] of known) {
      if (!now.has(name)) {
        if (parameter.in === 'query')
          this.report(where, `${name} was removed, and unknown parameters are rejected`);
      } else this.schema(`${where} ${name}`, parameter.schema, now.get(name).schema, 'request');
    }
  }

  requestBody(where, before, next) {
    const [old, now] = [this.old(before), this.new(next)];
    if (now?.required && !old?.required) this.report(where, 'a body is now required');
    if (old && !now) return this.report(where, 'it no longer accepts a body');
    if (old) this.contents(`${where} body`, old, now, 'request');
  }

  contents(where, before, next, side) {
    for (const [type, { schema }] of Object.entries(before.content ?? {})) {
      if (!next.content?.[type]) this.report(where, `${type} was removed`);
      else this.schema(where, schema, next.content[type].schema, side);
    }
    this.codes(where, before, next);
  }

  /** The names of a problem's examples are its error codes. */
  codes(where, before, next) {
    const [old, now] = [before, next].map(({ content }) =>
      Object.keys(content?.['application/problem+json']?.examples ?? {}),
    );
    const gone = old.filter((code) => !now.includes(code));
    if (gone.length > 0) this.report(where, `it no longer has ${gone.join(', ')}`);
  }

  schema(where, before, next, side) {
    if (!before || !next) return;
    const pair = before.$ref && next.$ref ? `${before.$ref} ${next.$ref} ${side}` : null;
    if (pair !== null && this.open.has(pair)) return;
    if (pair !== null) this.open.add(pair);
    this.resolved(where, this.old(before), this.new(next), side);
    if (pair !== null) this.open.delete(pair);
  }

  resolved(where, before, next, side) {
    this.types(where, before, next, side);
    this.enumeration(where, before, next, side);
    // Skip schemas whose choice of required fields became a minimum number of fields. A person must compare those.
    if (side === 'request' && (!before.oneOf || next.oneOf)) this.bounds(where, before, next);
    if (side === 'answer') this.format(where, before, next);
    const [old, now] = [before, next].map((schema) => schema.default ?? schema['x-default']);
    if (JSON.stringify(old) !== JSON.stringify(now))
      this.report(where, `the default was ${old} and is ${now}`);
    this.properties(where, before, next, side);
    this.schema(`${where}[]`, before.items, next.items, side);
    this.schema(`the property names of ${where}`, before.propertyNames, next.propertyNames, side);
    this.others(where, before.additionalProperties, next.additionalProperties, side);
    for (const kind of ['oneOf', 'anyOf']) this.alternatives(where, before[kind], next[kind], side);
  }

  /** Compares properties that the document does not name. */
  others(where, before, next, side) {
    if (side === 'request' && next === false && before !== false)
      return this.report(where, 'it no longer accepts other properties');
    if (typeof before === 'object' && typeof next === 'object') this.schema(`${where}.*`, before, next, side);
  }

  format(where, before, next) {
    if (before.format !== undefined && before.format !== next.format)
      this.report(where, `its format was ${before.format} and is ${next.format}`);
  }

  types(where, before, next, side) {
    const [old, now] = [before, next].map(({ type }) => (type === undefined ? null : [type].flat()));
    if (old === null || now === null) return;
    const [given, expected] = side === 'request' ? [old, now] : [now, old];
    const missing = given.filter(
      (type) => !expected.includes(type) && !(type === 'integer' && expected.includes('number')),
    );
    if (missing.length > 0)
      this.report(where, side === 'request' ? `it no longer accepts ${missing}` : `it may now be ${missing}`);
  }

  /**
   * Responses may have new values, because clients must have a default branch. Error codes are the exception: they must
   * not disappear.
   */
  enumeration(where, before, next, side) {
    if (!next.enum || (side !== 'request' && !CODES.test(where))) return;
    if (!before.enum) return side === 'request' && this.report(where, 'it now accepts only some values');
    const gone = before.enum.filter((value) => !next.enum.includes(value));
    if (gone.length > 0) this.report(where, `it no longer has ${gone.join(', ')}`);
  }

  bounds(where, before, next) {
    for (const [name, isNarrower] of Object.entries(BOUNDS)) {
      if (next[name] === undefined || WIDTHS.includes(next[name])) continue;
      if (before[name] === undefined) this.report(where, `${name} ${next[name]} is new`);
      else if (isNarrower(before[name], next[name]))
        this.report(where, `${name} was ${before[name]} and is ${next[name]}`);
    }
  }

  properties(where, before, next, side) {
    const [old, now] = [before.properties ?? {}, next.properties ?? {}];
    const requires = (schema, name) => (schema.required ?? []).includes(name);
    for (const [name, schema] of Object.entries(old)) {
      if (!now[name]) this.report(`${where}.${name}`, 'it was removed');
      else this.schema(`${where}.${name}`, schema, now[name], side);
    }
    for (const name of Object.keys(side === 'request' ? now : old)) {
      const wasRequired = requires(before, name);
      const isRequired = requires(next, name);
      if (side === 'request' && isRequired && !wasRequired)
        this.report(`${where}.${name}`, 'it is now required');
      if (side === 'answer' && wasRequired && !isRequired && now[name])
        this.report(`${where}.${name}`, 'it may now be missing');
    }
  }

  /**
   * Matches alternatives by their content, not their name in the document. Responses may have additional ones, such as
   * a new event type.
   */
  alternatives(where, before = [], next, side) {
    // Without a list of alternatives, clients may send more than before.
    if (next === undefined && side === 'request') return;
    const byName = new Map(
      (next ?? []).map((schema, index) => [alternativeName(this.new(schema), index), schema]),
    );
    before.forEach((schema, index) => {
      const name = alternativeName(this.old(schema), index);
      const same = byName.get(name);
      if (same) this.schema(where, schema, same, side);
      else this.report(where, `${name} is no longer among its alternatives`);
    });
  }

  old(value) {
    return resolve(this.before, value);
  }

  new(value) {
    return resolve(this.next, value);
  }
}

const withoutName = (path) => path.replaceAll(/\{[^}]*\}/g, '{}');
const withoutNames = (paths) =>
  Object.fromEntries(Object.entries(paths).map(([path, methods]) => [withoutName(path), methods]));

/** @returns the name of an alternative: an event's type, `null`, or its position */
function alternativeName({ type, properties }, index) {
  return properties?.type?.enum?.[0] ?? (type === 'null' ? 'null' : `number ${index + 1}`);
}

/** Normalizes the spelling of NUL in a pattern. */
const spelled = (pattern) => pattern.replaceAll('\\u0000', '\\x00');

/** Resolves a reference and merges the parts of `allOf` into one schema. */
function resolve(document, value) {
  if (value?.allOf) {
    const parts = [...value.allOf, { ...value, allOf: undefined }].map((part) => resolve(document, part));
    const all = (name) => Object.fromEntries(parts.flatMap((part) => Object.entries(part[name] ?? {})));
    const required = parts.flatMap((part) => part.required ?? []);
    return Object.assign({}, ...parts, { properties: all('properties'), required });
  }
  if (!value?.$ref) return value;
  const found = value.$ref
    .slice(2)
    .split('/')
    .reduce((part, name) => part?.[name.replaceAll('~1', '/').replaceAll('~0', '~')], document);
  return resolve(document, found);
}

if (process.argv[1] === import.meta.filename) {
  const [current, released] = [FOLDER, path.join(FOLDER, 'released')];
  if (process.argv.includes('--release'))
    for (const name of DOCUMENTS) copyFileSync(path.join(current, name), path.join(released, name));
  const read = (folder, name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
  const changes = DOCUMENTS.flatMap((name) =>
    breakingChanges(read(released, name), read(current, name)).map((change) => `${name}: ${change}`),
  );
  for (const change of changes) console.log(change);
  console.log(`${changes.length} breaking changes (docs/guides/versioning.md)`);
  process.exit(changes.length === 0 ? 0 : 1);
}
