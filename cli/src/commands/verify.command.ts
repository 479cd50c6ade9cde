import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import type { Command, Options } from '../command.js';
import type { Context } from '../context.js';
import {
  type Diagnosis,
  diagnoseSignature,
  documentHeaders,
  type SignatureHeaders,
  standardHeaders,
} from '../diagnose-signature.js';
import { variableOf } from '../credentials/paths.js';
import { EXIT, usageError } from '../exit-codes.js';
import { localSigningSecret } from '../listen/signing-secret.js';
import type { Output } from '../terminal/output.js';
import { wholeNumber } from './values.js';

const STANDARD = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;

export const verify: Command = {
  name: 'verify',
  summary: 'check the signature of a webhook and explain what is wrong with it',
  details: `Reads the body as bytes from --body or stdin, and the secret from --secret-file or ESIM_WEBHOOK_SECRET (default: the
secret of \`listen\`). It never prints the secret. Exit code 0: your server must accept the webhook. Exit code 1: it must
reject the webhook, also if a valid signature is older than 300 s. Use --at to check a webhook that arrived earlier.`,
  options: {
    header: { type: 'string', value: 'value', help: 'the value of X-Service-Signature' },
    'webhook-id': {
      type: 'string',
      value: 'value',
      help: 'for Standard Webhooks: the value of webhook-id',
    },
    'webhook-timestamp': {
      type: 'string',
      value: 'value',
      help: 'for Standard Webhooks: the value of webhook-timestamp',
    },
    'webhook-signature': {
      type: 'string',
      value: 'value',
      help: 'for Standard Webhooks: the value of webhook-signature',
    },
    body: { type: 'string', value: 'file', help: 'file with the raw body (default: stdin)' },
    'secret-file': { type: 'string', value: 'file', help: 'file with the signing secret of the endpoint' },
    at: { type: 'string', value: 'seconds', help: 'time of arrival in Unix seconds (default: now)' },
  },
  examples: [
    {
      command: "esim verify --header 't=1795080600,v1=8c1f…' --body request.json",
      says: 'verify with the secret in ESIM_WEBHOOK_SECRET',
    },
    {
      command: 'esim verify --header "$HEADER" --secret-file secret.txt < request.json',
      says: 'read the body from stdin',
    },
    {
      command:
        'esim verify --webhook-id "$ID" --webhook-timestamp "$TIME" --webhook-signature "$SIGNATURE" --body request.json',
      says: 'verify the headers of Standard Webhooks',
    },
  ],
  run: async (context, options) => {
    const diagnosis = diagnoseSignature({
      headers: headersOf(options),
      body: await bodyOf(options),
      secret: secretOf(context, options),
      nowSeconds: wholeSeconds(options),
    });
    const { output } = context;
    output.line(`${verdictOn(diagnosis, output)}  ${diagnosis.explanation}`);
    output.data(diagnosis);
    return diagnosis.valid ? EXIT.ok : EXIT.failed;
  },
};

/** Never call a correct signature bad, however late it is checked. */
function verdictOn({ valid, reason }: Diagnosis, output: Output): string {
  if (valid) return output.good('valid');
  if (reason === 'timestamp_too_old') return output.careful('correct signature, too old');
  if (reason === 'timestamp_in_future') return output.careful('correct signature, from the future');
  return output.bad(reason);
}

/** @throws CliError unless the options contain the headers of exactly one scheme */
function headersOf(options: Options): SignatureHeaders {
  const header = options.text('header');
  const standard = STANDARD.map((name) => options.text(name));
  const [id, timestamp, signature] = standard;
  if (standard.every((value) => value === undefined)) {
    if (header !== undefined) return documentHeaders(header);
    throw usageError(
      '--header is missing',
      `Pass the value of X-Service-Signature. For Standard Webhooks, pass --${STANDARD.join(', --')}.`,
    );
  }
  if (header !== undefined)
    throw usageError(
      '--header belongs to the other signature scheme',
      `Omit it, or omit --${STANDARD.join(', --')}.`,
    );
  if (id === undefined || timestamp === undefined || signature === undefined) {
    const missing = STANDARD.filter((name) => options.text(name) === undefined);
    throw usageError(`--${missing.join(' and --')} is missing`, 'Standard Webhooks needs all three headers.');
  }
  return standardHeaders({ id, timestamp, signature });
}

function wholeSeconds(options: Options): number {
  const now = Math.floor(Date.now() / 1_000);
  return options.text('at') === undefined
    ? now
    : Number(options.text('at')) || wholeNumber(options, 'at', now);
}

function bodyOf(options: Options): Promise<Buffer> {
  const file = options.text('body') ?? '-';
  return file === '-' ? buffer(process.stdin) : Promise.resolve(read(file));
}

function secretOf({ environment }: Context, options: Options): string {
  const file = options.text('secret-file');
  if (file !== undefined) return read(file).toString();
  return variableOf(environment, 'ESIM_WEBHOOK_SECRET') ?? localSigningSecret(environment).secret;
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw usageError(
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      'Pass a file that exists and that you can read.',
    );
  }
}
