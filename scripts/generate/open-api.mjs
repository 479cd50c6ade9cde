const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** The OpenAPI document with resolved references. */
export class OpenApi {
  constructor(document) {
    this.document = document;
  }

  /**
   * @returns the object itself, or the target of its `$ref`
   * @throws Error when the reference has no target
   */
  follow(object) {
    if (object?.$ref === undefined) return object;
    const found = object.$ref
      .slice(2)
      .split('/')
      .reduce((at, key) => at?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], this.document);
    if (found === undefined) throw new Error(`no ${object.$ref}`);
    return this.follow(found);
  }

  /** Every operation in document order, with `method` and `path`. */
  operations() {
    return Object.entries(this.document.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method) => ({ ...item[method], method, path })),
    );
  }

  /** Operations by tag, in the order of the tags' first use. */
  operationsByTag() {
    return Map.groupBy(this.operations(), ({ tags: [tag] }) => tag);
  }

  /** @returns the tag's label for pages. The tag's own name is only suitable for class names. */
  labelOf(tag) {
    return this.document.tags.find(({ name }) => name === tag)?.['x-displayName'] ?? tag;
  }

  parametersOf(operation) {
    return (operation.parameters ?? []).map((parameter) => this.follow(parameter));
  }

  /** @returns the operation's request body as `{ schema, example }`, or null */
  bodyOf(operation) {
    return operation.requestBody ? this.follow(operation.requestBody).content['application/json'] : null;
  }

  /** Responses by status, with resolved references. */
  responsesOf(operation) {
    return Object.entries(operation.responses).map(([status, response]) => ({
      status,
      ...this.follow(response),
    }));
  }

  /** Error codes that an operation can return, with their status. */
  errorsOf(operation) {
    return this.responsesOf(operation).flatMap(({ status, content }) =>
      Object.keys(content?.['application/problem+json']?.examples ?? {}).map((code) => ({ status, code })),
    );
  }

  /** The example problem that the document contains for a code. */
  problemOf(code) {
    return this.document.components.examples[code]?.value;
  }
}

/** @returns the example of a parameter or field, or its default or first allowed value, or undefined */
export function exampleOf({ example, schema = {} }) {
  return example ?? schema.example ?? schema['x-default'] ?? schema.enum?.[0];
}
