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
  summary:
    'check the connection to the API: reachability, DNS, TLS, clock, key, Node.js and your local server',
  arguments: '[url]',
  details: `With a URL, it sends your server two test events (webhook.test): one with a valid signature and one with an
invalid signature. The server must accept the first (2xx) and reject the second (4xx).`,
  options: {
    'forward-to': {
      type: 'string',
      short: 'f',
      value: 'url',
      help: 'the URL of your server, instead of the argument',
    },
  },
  examples: [
    { command: 'esim doctor', says: 'check everything between this machine and the API' },
    {
      command: 'esim doctor localhost:4000/webhooks --json',
      says: 'check your local server too, with JSON output',
    },
  ],
  run: async (context, options, [argument]) => {
    const target = oneOf(options, 'forward-to', argument);
    const url = target === undefined ? null : localUrl(target);
    let healthy = true;
    for await (const found of findings(context, url)) {
      // A reader that exits after a fault, such as `head`, already has its result.
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

/** Yields nothing without a file, because the key may come from the environment. */
function* fileFinding({ environment }: Context): Generator<Finding> {
  if (configFolder(environment) === null) return;
  const file = credentialsFile(environment);
  if (readPrivateFile(file) === null) return;
  const open = (statSync(file).mode & 0o077) !== 0;
  const detail = open ? `other users can read ${file}. Run chmod 600 ${file}` : file;
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
