import { exampleOf } from './open-api.mjs';

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** docs/postman.json: a folder for each tag; `base_url` and `api_key` are the collection's variables. */
export function renderPostmanCollection(api) {
  const { info } = api.document;
  const collection = {
    info: { name: info.title, description: info.description, version: info.version, schema: SCHEMA },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{api_key}}', type: 'string' }] },
    variable: [
      { key: 'base_url', value: 'http://localhost:3000' },
      {
        key: 'api_key',
        value: '',
        description: 'A Sandbox key; never save a Live key in a shared collection.',
      },
    ],
    item: [...api.operationsByTag()].map(([tag, operations]) => ({
      name: tag,
      item: operations.map((operation) => ({ name: operation.summary, request: requestOf(api, operation) })),
    })),
  };
  return `${JSON.stringify(collection, null, 2)}\n`;
}

function requestOf(api, operation) {
  const parameters = api.parametersOf(operation);
  const body = api.bodyOf(operation)?.example;
  return {
    method: operation.method.toUpperCase(),
    header: headersOf(operation, parameters, body),
    url: urlOf(operation, parameters),
    ...(body === undefined
      ? {}
      : {
          body: { mode: 'raw', raw: JSON.stringify(body, null, 2), options: { raw: { language: 'json' } } },
        }),
    description: operation.description ?? operation.summary,
  };
}

/** Postman makes a new `{{$guid}}` for each click, so each click is a new intent. */
function headersOf(operation, parameters, body) {
  const optional = parameters
    .filter((parameter) => parameter.in === 'header' && parameter.name !== 'Idempotency-Key')
    .map((parameter) => ({
      key: parameter.name,
      value: '',
      disabled: true,
      description: parameter.description,
    }));
  return [
    ...(operation.method === 'post' ? [{ key: 'Idempotency-Key', value: '{{$guid}}' }] : []),
    ...(body === undefined ? [] : [{ key: 'Content-Type', value: 'application/json' }]),
    ...optional,
  ];
}

function urlOf({ path }, parameters) {
  const inPath = parameters.filter((parameter) => parameter.in === 'path');
  const query = parameters
    .filter((parameter) => parameter.in === 'query')
    .map((parameter) => ({
      key: parameter.name,
      value: String(exampleOf(parameter) ?? ''),
      disabled: true,
      ...(parameter.description === undefined ? {} : { description: parameter.description }),
    }));
  const segments = path
    .slice(1)
    .split('/')
    .map((segment) => segment.replace(/^\{(\w+)\}$/, ':$1'));
  return {
    raw: `{{base_url}}/${segments.join('/')}`,
    host: ['{{base_url}}'],
    path: segments,
    ...(query.length > 0 ? { query } : {}),
    ...(inPath.length > 0
      ? {
          variable: inPath.map((parameter) => ({
            key: parameter.name,
            value: String(exampleOf(parameter) ?? ''),
          })),
        }
      : {}),
  };
}
