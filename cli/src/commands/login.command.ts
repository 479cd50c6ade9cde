import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { refuseClearText } from '../credentials/credential.js';
import {
  credentialsFile,
  modeOfKey,
  readCredentials,
  removeCredentials,
  writeCredentials,
} from '../credentials/stored-credentials.js';
import { EXIT, usageError } from '../exit-codes.js';

/** Reads the key from stdin. At a terminal, prompts for it without echo. */
async function readKey(context: Context): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).trim();
  context.output.note('Paste an API key and press Enter. The key is not shown.');
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const prompt = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return (await prompt.question('', { signal: context.signal })).trim();
  } finally {
    prompt.close();
  }
}

export const login: Command = {
  name: 'login',
  summary: 'check an API key and store it (file mode 0600)',
  details: `Reads the key from stdin, which keeps it out of process lists and shell history. You can store a Sandbox key and a Live
key. Commands use the Sandbox key unless you pass --live. Each key is sent only to the URL that accepted it, and a Live
key only over https.`,
  examples: [
    { command: 'esim login', says: 'paste the key at the prompt' },
    { command: 'printenv KEY | esim login --base-url https://api.example.com', says: 'from a script' },
  ],
  run: async (context) => {
    const key = await readKey(context);
    const mode = modeOfKey(key);
    if (mode === null)
      throw usageError(
        'this is not an API key',
        'A key has the form svc_sk_test_ or svc_sk_live_ and 32 characters.',
      );
    const baseUrl = context.baseUrlFor(mode);
    refuseClearText(mode, baseUrl);
    const me = await context.apiAt(baseUrl, key).me();
    const kept = readCredentials(context.environment);
    writeCredentials(context.environment, { ...kept, [mode]: { key, baseUrl } });
    const file = credentialsFile(context.environment);
    context.output.line(
      `${context.output.good('logged in')} to ${baseUrl} as ${me.partner_name} (${mode}); the key is stored in ${file}`,
    );
    context.output.data({ partner_id: me.partner_id, mode, key_id: me.key_id, base_url: baseUrl, file });
    return EXIT.ok;
  },
};

export const logout: Command = {
  name: 'logout',
  summary: 'delete the stored keys (they stay valid until you revoke them in the portal)',
  examples: [{ command: 'esim logout', says: 'delete the file with the keys' }],
  run: (context) => {
    const file = removeCredentials(context.environment);
    context.output.line('deleted the stored keys');
    context.output.data({ file });
    return Promise.resolve(EXIT.ok);
  },
};
