import { exampleOf } from './open-api.mjs';

/** What the recorded answers were asked for (test/docs/recorded-answers.test.ts). */
const SHOWN = { country: 'FR', limit: 2 };

/** A call that can be pasted, with the variables of the quick start, which the SDK and the command line read too. */
export function curlSample(api, operation) {
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
  // With a body curl sends a POST by itself.
  const isSaid = operation.method === 'get' || (operation.method === 'post' && body !== undefined);
  return [
    `curl -s ${isSaid ? '' : `-X ${operation.method.toUpperCase()} `}-H "Authorization: Bearer $ESIM_API_KEY"`,
    ...(operation.method === 'post' ? ['-H "Idempotency-Key: $(date +%s)-$RANDOM"'] : []),
    `"$ESIM_BASE_URL${path}${search}"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`]),
  ].join(' \\\n  ');
}
