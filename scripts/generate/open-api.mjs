const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** The OpenAPI document, with its references followed. */
export class OpenApi {
  constructor(document) {
    this.document = document;
  }

  /** The object, or the one that its `$ref` names. @throws Error when the reference leads nowhere */
  follow(object) {
    if (object?.$ref === undefined) return object;
    const found = object.$ref
      .slice(2)
      .split('/')
      .reduce((at, key) => at?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], this.document);
    if (found === undefined) throw new Error(`no ${object.$ref}`);
    return this.follow(found);
  }

  /** Every operation in the document's order, with `method` and `path`. */
  operations() {
    return Object.entries(this.document.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method) => ({ ...item[method], method, path })),
    );
  }

  /** Operations by their tag, in the order in which tags first occur. */
  operationsByTag() {
    return Map.groupBy(this.operations(), ({ tags: [tag] }) => tag);
  }

  /** The label of a tag on a page; its name is made for the names of classes. */
  labelOf(tag) {
    return this.document.tags.find(({ name }) => name === tag)?.['x-displayName'] ?? tag;
  }

  parametersOf(operation) {
    return (operation.parameters ?? []).map((parameter) => this.follow(parameter));
  }

  /** The body that an operation takes, `{ schema, example }`, or null. */
  bodyOf(operation) {
    return operation.requestBody ? this.follow(operation.requestBody).content['application/json'] : null;
  }

  /** Answers by status, followed. */
  responsesOf(operation) {
    return Object.entries(operation.responses).map(([status, response]) => ({
      status,
      ...this.follow(response),
    }));
  }

  /** Error codes that an operation can answer, with their status. */
  errorsOf(operation) {
    return this.responsesOf(operation).flatMap(({ status, content }) =>
      Object.keys(content?.['application/problem+json']?.examples ?? {}).map((code) => ({ status, code })),
    );
  }

  /** The problem that the document shows for a code. */
  problemOf(code) {
    return this.document.components.examples[code]?.value;
  }
}

/** The example of a parameter or field, else its default or first allowed value; undefined without any. */
export function exampleOf({ example, schema = {} }) {
  return example ?? schema.example ?? schema['x-default'] ?? schema.enum?.[0];
}
