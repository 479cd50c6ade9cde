import { exampleOf } from './open-api.mjs';

/** The query that test/docs/recorded-answers.test.ts uses. */
const SHOWN = { country: 'FR', limit: 2 };

/** The SDK's method for each operation. `npm run generate` fails for an operation without an entry. */
const SDK_METHODS = {
  getMe: 'me',
  listPackages: 'catalog.list',
  listCatalogChanges: 'catalog.changes',
  getPackage: 'catalog.get',
  listDestinations: 'catalog.destinations',
  placeOrder: 'orders.place',
  listOrders: 'orders.list',
  getOrder: 'orders.get',
  cancelOrder: 'orders.cancel',
  replaceEsim: 'esims.replace',
  placeTopup: 'topups.place',
  listTopups: 'topups.list',
  getTopup: 'topups.get',
  setAutoTopup: 'esims.setAutoTopup',
  getAutoTopup: 'esims.autoTopup',
  deleteAutoTopup: 'esims.deleteAutoTopup',
  requestRefund: 'refunds.create',
  listRefundRequests: 'refunds.list',
  getRefundRequest: 'refunds.get',
  cancelRefundRequest: 'refunds.cancel',
  listEsims: 'esims.list',
  getEsim: 'esims.get',
  updateEsim: 'esims.update',
  suspendEsim: 'esims.suspend',
  resumeEsim: 'esims.resume',
  revokeEsim: 'esims.revoke',
  createInstallLink: 'esims.createInstallLink',
  listInstallLinks: 'esims.installLinks',
  getInstallLink: 'esims.installLink',
  revokeInstallLink: 'esims.revokeInstallLink',
  getQrCode: 'esims.qr',
  getUsage: 'esims.usage',
  listEsimPlans: 'esims.plans',
  listTopupPackages: 'esims.topupPackages',
  activateEsim: 'sandbox.activate',
  consumeData: 'sandbox.consume',
  expireEsim: 'sandbox.expire',
  listEvents: 'events.list',
  getEvent: 'events.get',
  getBalance: 'wallet.balance',
  listTransactions: 'wallet.transactions',
  listRequests: 'requests.list',
};

/** Arguments after the ids, where the SDK's method does not take the query as its filters. */
const ARGUMENTS = {
  listEsimPlans: [],
  listInstallLinks: [],
  listTopupPackages: [],
  listEvents: ['{}', typescriptOf({ limit: SHOWN.limit })],
};

/**
 * The same call in three languages, by the name of the language in a code fence. The samples read the variables of
 * the quick start.
 */
export function samplesOf(api, operation) {
  const call = callOf(api, operation);
  return {
    bash: curlSample(call, {
      token: '$ESIM_API_KEY',
      baseUrl: '$ESIM_BASE_URL',
      needsKey: call.method === 'post',
    }),
    typescript: typescriptSample(call),
    python: pythonSample(call),
  };
}

/** A call of the admin API with curl. It has no SDK, and its idempotency keys are optional. */
export function adminSample(api, operation) {
  const variables = { token: '$ADMIN_TOKEN', baseUrl: '$ADMIN_URL', needsKey: false };
  return { bash: curlSample(callOf(api, operation), variables) };
}

/** The example values of an operation. */
function callOf(api, { operationId, method, path }) {
  const operation = api.document.paths[path][method];
  const parameters = api.parametersOf(operation);
  const example = (name) =>
    exampleOf(parameters.find((each) => each.in === 'path' && each.name === name) ?? {}) ?? `{${name}}`;
  const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => String(example(name)));
  const query = Object.fromEntries(
    parameters
      .filter((parameter) => parameter.in === 'query' && parameter.name in SHOWN)
      .map(({ name }) => [name, SHOWN[name]]),
  );
  return {
    operationId,
    method,
    ids,
    query,
    body: api.bodyOf(operation)?.example,
    path: path.replaceAll(/\{(\w+)\}/g, (_, name) => example(name)),
  };
}

function curlSample({ method, path, query, body }, { token, baseUrl, needsKey }) {
  const search = new URLSearchParams(query).toString();
  // With a body, curl sends a POST by default.
  const isSaid = method === 'get' || (method === 'post' && body !== undefined);
  return [
    `curl -s ${isSaid ? '' : `-X ${method.toUpperCase()} `}-H "Authorization: Bearer ${token}"`,
    ...(needsKey ? ['-H "Idempotency-Key: $(date +%s)-$RANDOM"'] : []),
    `"${baseUrl}${path}${search && `?${search}`}"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`]),
  ].join(' \\\n  ');
}

function typescriptSample({ operationId, method, ids, query, body }) {
  const name = SDK_METHODS[operationId];
  if (name === undefined)
    throw new Error(`scripts/generate/samples.mjs names no method of the SDK for ${operationId}`);
  const given = body ?? (Object.keys(query).length === 0 ? undefined : query);
  const others = ARGUMENTS[operationId] ?? (given === undefined ? [] : [typescriptOf(given)]);
  const args = [...ids.map((id) => `'${id}'`), ...others];
  const call = `await esim.${name}(${args.join(', ')})`;
  const result = method === 'delete' ? `${call};` : `const result = ${call};\nconsole.log(result);`;
  return `import { EsimClient } from '@partner-esim/sdk';

const esim = new EsimClient({
  apiKey: process.env['ESIM_API_KEY'] ?? '',
  baseUrl: process.env['ESIM_BASE_URL'] ?? '',
});

${result}`;
}

function pythonSample({ method, path, query, body }) {
  const headers = ['"Authorization": f"Bearer {os.environ[\'ESIM_API_KEY\']}",'];
  if (method === 'post') headers.push('"Idempotency-Key": str(uuid.uuid4()),');
  const options = [
    `headers={\n${indented(headers.join('\n'), 8)}\n    },`,
    ...(Object.keys(query).length === 0 ? [] : [`params=${pythonOf(query, 4)},`]),
    ...(body === undefined ? [] : [`json=${pythonOf(body, 4)},`]),
    'timeout=30,',
  ];
  return `import os
${method === 'post' ? 'import uuid\n' : ''}
import requests

response = requests.${method}(
    f"{os.environ['ESIM_BASE_URL']}${path}",
    ${options.join('\n    ')}
)
response.raise_for_status()
print(response.json()["data"])`;
}

const indented = (text, spaces) => text.replaceAll(/^/gm, ' '.repeat(spaces));

/** A value as a TypeScript literal in the style of the repository. */
function typescriptOf(value) {
  if (Array.isArray(value)) return `[${value.map(typescriptOf).join(', ')}]`;
  if (value !== null && typeof value === 'object')
    return `{ ${Object.entries(value)
      .map(([name, inner]) => `${name}: ${typescriptOf(inner)}`)
      .join(', ')} }`;
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : String(value);
}

/** A value as a Python literal, with one line per field. */
function pythonOf(value, indent) {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map((each) => pythonOf(each, indent)).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const inner = ' '.repeat(indent + 4);
  const lines = Object.entries(value).map(
    ([name, field]) => `${inner}${JSON.stringify(name)}: ${pythonOf(field, indent + 4)},\n`,
  );
  return `{\n${lines.join('')}${' '.repeat(indent)}}`;
}
