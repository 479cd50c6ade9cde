import { baseUrlOf, isLoopback } from '../base-url.js';
import { CliError, EXIT, usageError } from '../exit-codes.js';
import { type Environment, variableOf } from './paths.js';
import { type Mode, modeOfKey, readCredentials, type StoredKey } from './stored-credentials.js';

const DEFAULT_BASE_URL = 'http://localhost:3000';

/** The settings that select a key and an API address. */
export interface CredentialChoice {
  readonly environment: Environment;
  /** Whether `--live` was passed. */
  readonly live: boolean;
  /** The value of `--base-url`. */
  readonly baseUrl: string | undefined;
}

/** A key and the address that it may be sent to. */
export interface Credential {
  readonly key: string;
  readonly mode: Mode;
  readonly baseUrl: string;
}

const NAMES: Readonly<Record<Mode, string>> = { sandbox: 'Sandbox', live: 'Live' };

/** The base URL for a key of this mode: the configured one, otherwise the one used at login, otherwise this machine. */
export function placeFor(mode: Mode, choice: CredentialChoice): string {
  const kept = (): string | null | undefined => readCredentials(choice.environment)[mode]?.baseUrl;
  return baseUrlOf(saidPlace(choice) ?? kept() ?? DEFAULT_BASE_URL);
}

/** The mode of ESIM_API_KEY, or without it the mode that `--live` selects. */
export function wantedMode({ environment, live }: CredentialChoice): Mode {
  return modeOfKey(variableOf(environment, 'ESIM_API_KEY') ?? '') ?? (live ? 'live' : 'sandbox');
}

/**
 * ESIM_API_KEY, which may be sent to any configured address. Without it, the stored key: Sandbox, or Live with
 * `--live`. A stored key is sent only to the address of its login.
 * @throws CliError without a key for this mode and address
 */
export function credentialOf(choice: CredentialChoice): Credential {
  const given = variableOf(choice.environment, 'ESIM_API_KEY');
  const credential = given ? fromEnvironment(given, choice) : fromFile(choice);
  refuseClearText(credential.mode, credential.baseUrl);
  return credential;
}

/** @throws CliError when a Live key would leave this machine unencrypted */
export function refuseClearText(mode: Mode, baseUrl: string): void {
  if (mode === 'live' && !baseUrl.startsWith('https:') && !isLoopback(baseUrl))
    throw usageError('a Live key is sent only over https', `The base URL is ${baseUrl}. Change it to https.`);
}

function fromEnvironment(key: string, choice: CredentialChoice): Credential {
  const mode = formOf(key);
  if (choice.live && mode !== 'live') {
    throw usageError('--live needs a Live key, but ESIM_API_KEY is a Sandbox key', liveKeyHint(choice));
  }
  return { key, mode, baseUrl: placeFor(mode, choice) };
}

/** Mentions ESIM_LIVE_KEY because `npm start` exports it for curl, but the CLI does not read it. */
function liveKeyHint({ environment }: CredentialChoice): string {
  const sandbox = 'For the Sandbox, omit --live.';
  if (readCredentials(environment).live !== undefined)
    return `Run \`unset ESIM_API_KEY\` to use the stored Live key. ${sandbox}`;
  const login = 'Run `unset ESIM_API_KEY`, then `esim login` with a Live key (ESIM_LIVE_KEY is not read).';
  return `${login} ${sandbox}`;
}

function fromFile(choice: CredentialChoice): Credential {
  const wanted: Mode = choice.live ? 'live' : 'sandbox';
  const kept = readCredentials(choice.environment)[wanted];
  if (kept === undefined) {
    throw new CliError(
      EXIT.unauthorized,
      `there is no ${NAMES[wanted]} key`,
      'Run `esim login`, or set ESIM_API_KEY.',
    );
  }
  if (formOf(kept.key) !== wanted)
    throw new CliError(
      EXIT.unauthorized,
      `the key stored for ${NAMES[wanted]} belongs to the other mode`,
      'Run `esim logout`, then `esim login`.',
    );
  return { key: kept.key, mode: wanted, baseUrl: placeOfStored(kept, wanted, choice) };
}

/** @throws CliError when the stored key would be sent to an address other than that of its login */
function placeOfStored({ baseUrl }: StoredKey, mode: Mode, choice: CredentialChoice): string {
  const said = saidPlace(choice);
  const wanted = said === undefined ? null : baseUrlOf(said);
  const kept = baseUrl === null ? null : baseUrlOf(baseUrl);
  if (kept !== null && (wanted ?? kept) === kept) return kept;
  const message =
    kept === null
      ? `the stored ${NAMES[mode]} key has no base URL`
      : `the stored ${NAMES[mode]} key belongs to ${kept} and is not sent elsewhere`;
  const login = `esim login --base-url ${wanted ?? '<url>'}`;
  throw new CliError(EXIT.unauthorized, message, `Run \`${login}\`, or set ESIM_API_KEY.`);
}

function formOf(key: string): Mode {
  const mode = modeOfKey(key);
  if (mode !== null) return mode;
  throw new CliError(
    EXIT.unauthorized,
    'this is not an API key',
    'A key has the form svc_sk_test_ or svc_sk_live_ and 32 characters.',
  );
}

function saidPlace({ environment, baseUrl }: CredentialChoice): string | undefined {
  return baseUrl ?? variableOf(environment, 'ESIM_BASE_URL');
}
