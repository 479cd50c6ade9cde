import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import type { Command, Options } from '../command.js';
import type { Context } from '../context.js';
import { diagnoseSignature } from '../diagnose-signature.js';
import { EXIT, usageError } from '../exit-codes.js';
import { localSigningSecret } from '../listen/signing-secret.js';
import { wholeNumber } from './orders.command.js';

export const verify: Command = {
  name: 'verify',
  summary: 'check the signature of a webhook, and say what is wrong with it',
  details: `The body is read as bytes from --body or stdin. The secret comes from --secret-file or ESIM_WEBHOOK_SECRET; without
both it is the one that \`listen\` signs with. It is never printed.`,
  options: {
    header: { type: 'string', value: 'value', help: 'the value of X-Service-Signature' },
    body: { type: 'string', value: 'file', help: 'the raw body (- or nothing: stdin)' },
    'secret-file': { type: 'string', value: 'file', help: 'the signing secret of the endpoint' },
    at: { type: 'string', value: 'seconds', help: 'the time of arrival in Unix seconds (now)' },
  },
  examples: [
    {
      command: "esim verify --header 't=1795080600,v1=8c1f…' --body request.json",
      says: 'with ESIM_WEBHOOK_SECRET',
    },
    { command: 'esim verify --header "$HEADER" --secret-file secret.txt < request.json', says: 'from stdin' },
  ],
  run: async (context, options) => {
    const header = options.text('header');
    if (header === undefined)
      throw usageError('--header is missing', 'It is the value of X-Service-Signature.');
    const diagnosis = diagnoseSignature({
      header,
      body: await bodyOf(options),
      secret: secretOf(context, options),
      nowSeconds: wholeSeconds(options),
    });
    const { output } = context;
    output.line(
      `${diagnosis.valid ? output.good('valid') : output.bad(diagnosis.reason)}  ${diagnosis.explanation}`,
    );
    output.data(diagnosis);
    return diagnosis.valid ? EXIT.ok : EXIT.failed;
  },
};

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
  // An editor's line end is no part of the secret; other white space may be the mistake.
  if (file !== undefined)
    return read(file)
      .toString()
      .replace(/\r?\n$/, '');
  return environment['ESIM_WEBHOOK_SECRET'] ?? localSigningSecret(environment).secret;
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}
