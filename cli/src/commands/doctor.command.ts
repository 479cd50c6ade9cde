import { statSync } from 'node:fs';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { configFolder } from '../credentials/paths.js';
import { readPrivateFile } from '../credentials/private-file.js';
import { credentialsFile } from '../credentials/stored-credentials.js';
import { type Finding, isHealthy } from '../doctor/finding.js';
import { localServerFinding } from '../doctor/local-server.js';
import { nodeFinding } from '../doctor/node-version.js';
import { wayToApi } from '../doctor/way-to-api.js';
import { EXIT } from '../exit-codes.js';
import { localUrl } from '../listen/local-delivery.js';
import { localSigningSecret } from '../listen/signing-secret.js';
import { ENGINES } from '../version.js';
import { oneOf } from './values.js';

export const doctor: Command = {
  name: 'doctor',
  summary: 'check the way to the API: reach, name, TLS, clock, key, Node.js, and the local server',
  arguments: '[url]',
  details: `With a URL it sends the server two test events (webhook.test), one that is signed as \`listen\` signs and one
that is signed wrongly: the server has to take the first (2xx) and to refuse the second (4xx).`,
  options: {
    'forward-to': {
      type: 'string',
      short: 'f',
      value: 'url',
      help: 'the URL of a server, instead of the argument: it also gets two test events',
    },
  },
  examples: [
    { command: 'esim doctor', says: 'everything between here and the API' },
    {
      command: 'esim doctor localhost:4000/webhooks --json',
      says: 'and the server on this machine, for a script',
    },
  ],
  run: async (context, options, [argument]) => {
    const target = oneOf(options, 'forward-to', argument);
    const url = target === undefined ? null : localUrl(target);
    let healthy = true;
    for await (const found of findings(context, url)) {
      // Who has read a fault and left has got its answer.
      if (context.signal.aborted && !healthy) return EXIT.failed;
      context.signal.throwIfAborted();
      healthy &&= isHealthy(found);
      show(context, found);
    }
    return healthy ? EXIT.ok : EXIT.failed;
  },
};

async function* findings(context: Context, url: URL | null): AsyncGenerator<Finding> {
  yield* wayToApi(context);
  yield nodeFinding(process.version, ENGINES.node);
  yield* fileFinding(context);
  if (url !== null) yield await localServerFinding(url, localSigningSecret(context.environment).secret);
}

/** Nothing without a file: the key may come from the environment. */
function* fileFinding({ environment }: Context): Generator<Finding> {
  if (configFolder(environment) === null) return;
  const file = credentialsFile(environment);
  if (readPrivateFile(file) === null) return;
  const open = (statSync(file).mode & 0o077) !== 0;
  const detail = open ? `others can read ${file}: run chmod 600 on it` : file;
  yield { check: 'credentials', status: open ? 'bad' : 'ok', detail };
}

function show({ output }: Context, found: Finding): void {
  const { check, status, detail, facts } = found;
  const words = {
    ok: output.good('ok  '),
    warn: output.careful('warn'),
    bad: output.bad('BAD '),
    not_checked: output.dim('-   '),
  };
  output.line(`${words[status]}  ${check.padEnd(12)}  ${detail}`);
  output.data({ check, ok: isHealthy(found), status, detail, ...facts });
}
