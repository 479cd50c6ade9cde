import { exampleOf } from './open-api.mjs';

/** A call that can be pasted, with `$KEY` for the API key. */
export function curlSample(api, operation) {
  const parameters = api.parametersOf(operation);
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const parameter = parameters.find((candidate) => candidate.in === 'path' && candidate.name === name);
    return exampleOf(parameter ?? {}) ?? `{${name}}`;
  });
  const body = api.bodyOf(operation)?.example;
  return [
    `curl -s ${operation.method === 'get' ? '' : `-X ${operation.method.toUpperCase()} `}"$BASE_URL${path}"`,
    '-H "Authorization: Bearer $KEY"',
    ...(operation.method === 'post' ? ['-H "Idempotency-Key: $(uuidgen)"'] : []),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`]),
  ].join(' \\\n  ');
}
