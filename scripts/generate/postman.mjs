import { exampleOf } from './open-api.mjs';

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** Variables for ids, by the path segment before the id. */
const ID_VARIABLES = {
  orders: 'order_id',
  esims: 'esim_id',
  topups: 'topup_id',
  events: 'event_id',
  'refund-requests': 'refund_request_id',
  'install-links': 'install_link_id',
};

/** Body fields that must differ between calls, or whose values come from an earlier response. */
const BODY_VALUES = { reference: 'booking-{{$guid}}', esim_id: '{{esim_id}}' };

/** Scripts that store variables for later requests, by operation. */
const KEEPS = {
  placeOrder: [
    "pm.collectionVariables.set('order_id', data.id);",
    "pm.collectionVariables.unset('esim_id');",
  ],
  placeTopup: ["pm.collectionVariables.set('topup_id', data.id);"],
  listEvents: ["if (data.length > 0) pm.collectionVariables.set('event_id', data[0].id);"],
  requestRefund: ["pm.collectionVariables.set('refund_request_id', data.id);"],
  createInstallLink: ["pm.collectionVariables.set('install_link_id', data.id);"],
  revokeInstallLink: ["pm.collectionVariables.unset('install_link_id');"],
  cancelOrder: forgetOrder(),
  replaceEsim: forgetOrder(),
  revokeEsim: forgetOrder(),
  expireEsim: forgetOrder(),
};

function forgetOrder() {
  return ["pm.collectionVariables.unset('order_id');", "pm.collectionVariables.unset('esim_id');"];
}

/** Defines `call(method, path, body, done)` in a script. */
const CALL = String.raw`const variables = pm.collectionVariables;
const call = (method, path, body, done) =>
  pm.sendRequest(
    {
      method,
      url: pm.variables.replaceIn('{{base_url}}') + path,
      header: {
        Authorization: pm.variables.replaceIn('Bearer {{api_key}}'),
        'Content-Type': 'application/json',
        'Idempotency-Key': pm.variables.replaceIn('{{$guid}}'),
      },
      body: body && { mode: 'raw', raw: JSON.stringify(body) },
    },
    (error, answer) => !error && done(answer.json().data),
  );`;

/** Runs before each request. It never orders with a Live key, because that would cost money. */
const ORDER_FIRST = String.raw`
// A request that needs an order or an eSIM waits for one. Without one, a Sandbox key orders it.
const needs = (name) => JSON.stringify(pm.request).includes('{{' + name + '}}');
${CALL}
const waitForEsim = (triesLeft) =>
  call('GET', '/v1/orders/' + variables.get('order_id'), null, ({ esims }) => {
    if (esims.length > 0) variables.set('esim_id', esims[0].esim_id);
    else if (triesLeft > 0) setTimeout(() => waitForEsim(triesLeft - 1), 500);
  });
if ((needs('order_id') || needs('esim_id')) && !variables.get('esim_id')) {
  if (variables.get('order_id')) waitForEsim(60);
  else if (pm.variables.get('api_key').includes('_test_'))
    call('POST', '/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, ({ id }) => {
      variables.set('order_id', id);
      waitForEsim(60);
    });
}`;

const LINK_FIRST = String.raw`
// Without a link, there would be nothing to get.
${CALL}
if (!variables.get('install_link_id') && pm.variables.get('api_key').includes('_test_'))
  call('POST', '/v1/esims/' + variables.get('esim_id') + '/install-links', {}, ({ id }) =>
    variables.set('install_link_id', id),
  );`;

/** Scripts that run before one request, by operation; only with a Sandbox key, as the order before it. */
const FIRST = {
  resumeEsim: waitForAction('resume'),
  revokeEsim: waitForAction('revoke'),
  getInstallLink: LINK_FIRST,
  revokeInstallLink: LINK_FIRST,
  getAutoTopup: String.raw`
// Without a rule, there would be nothing to get.
const rule = {
  at_percent: 80,
  package_id: 'pkg_fr_topup_1gb_7d',
  max_times: 1,
  max_price: { amount: 1000, currency: 'USD' },
};
${CALL}
if (pm.variables.get('api_key').includes('_test_'))
  call('PUT', '/v1/esims/' + variables.get('esim_id') + '/auto-topup', rule, () => {});`,
};

function waitForAction(action) {
  return String.raw`
// Waits until the eSIM offers the action. A working eSIM is suspended before it is resumed.
${CALL}
const waitFor = (triesLeft) => {
  const path = '/v1/esims/' + variables.get('esim_id');
  const next = () => setTimeout(() => waitFor(triesLeft - 1), 500);
  call('GET', path, null, ({ actions }) => {
    if (actions.includes('${action}') || triesLeft === 0) return;
    if ('${action}' === 'resume' && actions.includes('suspend')) call('POST', path + '/suspend', null, next);
    else next();
  });
};
if (pm.variables.get('api_key').includes('_test_')) waitFor(60);`;
}

/** Renders docs/postman.json with one folder per tag. The requests pass from top to bottom, and also individually. */
export function renderPostmanCollection(api) {
  const { info } = api.document;
  const collection = {
    info: { name: info.title, description: info.description, version: info.version, schema: SCHEMA },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{api_key}}', type: 'string' }] },
    event: [script('prerequest', ORDER_FIRST.trim().split('\n'))],
    variable: [
      { key: 'base_url', value: 'http://localhost:3000' },
      {
        key: 'api_key',
        value: '',
        description: 'A Sandbox key; never save a Live key in a shared collection.',
      },
      ...Object.values(ID_VARIABLES).map((key) => ({
        key,
        value: '',
        description: 'Set by the requests.',
      })),
    ],
    item: [...api.operationsByTag()].map(([tag, operations]) => ({
      name: api.labelOf(tag),
      item: operations.map((operation) => ({
        name: operation.summary,
        event: [
          ...(FIRST[operation.operationId]
            ? [script('prerequest', FIRST[operation.operationId].trim().split('\n'))]
            : []),
          script('test', testOf(operation)),
        ],
        request: requestOf(api, operation),
      })),
    })),
  };
  return `${JSON.stringify(collection, null, 2)}\n`;
}

function script(listen, exec) {
  return { listen, script: { type: 'text/javascript', exec } };
}

function testOf({ operationId, responses }) {
  const status = Object.keys(responses).find((code) => code.startsWith('2'));
  return [
    `pm.test('returns ${status}', () => {`,
    `  pm.response.to.have.status(${status});`,
    '  const { data } = pm.response.json();',
    ...(KEEPS[operationId] ?? []).map((line) => `  ${line}`),
    '});',
  ];
}

function requestOf(api, operation) {
  const parameters = api.parametersOf(operation);
  const example = api.bodyOf(operation)?.example;
  const body = example && { ...example, ...pick(BODY_VALUES, Object.keys(example)) };
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

/** Postman creates a new `{{$guid}}` per send, so each click is a new intent. */
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
            value: idOf(segments, parameter),
          })),
        }
      : {}),
  };
}

function idOf(segments, parameter) {
  const variable = ID_VARIABLES[segments[segments.indexOf(`:${parameter.name}`) - 1]];
  return variable === undefined ? String(exampleOf(parameter) ?? '') : `{{${variable}}}`;
}

function pick(values, names) {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name)));
}
