import type { Environment } from './credentials/paths.js';
import { modeOfKey, type Mode, readCredentials } from './credentials/stored-credentials.js';
import { CliError, EXIT } from './exit-codes.js';
import { PartnerApi } from './partner-api.js';
import type { Output } from './terminal/output.js';

const DEFAULT_BASE_URL = 'http://localhost:3000';

export interface ContextOptions {
  readonly environment: Environment;
  readonly output: Output;
  /** `--live` was given. */
  readonly live: boolean;
  readonly baseUrl: string | undefined;
  /** Aborted by Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
}

/** What a command works with: where the API is, whose key, where to print. */
export class Context {
  readonly environment: Environment;
  readonly output: Output;
  readonly live: boolean;
  readonly signal: AbortSignal;

  constructor(private readonly options: ContextOptions) {
    this.environment = options.environment;
    this.output = options.output;
    this.live = options.live;
    this.signal = options.signal;
  }

  /** Without a slash at its end and without `/v1`, which the banner of a local service prints. */
  get baseUrl(): string {
    const { environment, baseUrl } = this.options;
    const url =
      baseUrl ?? environment['ESIM_BASE_URL'] ?? readCredentials(environment).baseUrl ?? DEFAULT_BASE_URL;
    return url.replace(/\/+$/, '').replace(/\/v1$/, '');
  }

  /** ESIM_API_KEY wins; else the stored key of the mode, Sandbox unless `--live`. @throws CliError without one */
  get apiKey(): string {
    const fromEnvironment = this.environment['ESIM_API_KEY'];
    const wanted: Mode = this.live ? 'live' : 'sandbox';
    const key = fromEnvironment || readCredentials(this.environment).keys[wanted];
    if (!key) {
      throw new CliError(
        EXIT.unauthorized,
        `there is no ${this.live ? 'Live' : 'Sandbox'} key`,
        'Run `esim login`, or set ESIM_API_KEY.',
      );
    }
    if (modeOfKey(key) === null) {
      throw new CliError(
        EXIT.unauthorized,
        'this is not an API key',
        'A key is svc_sk_test_ or svc_sk_live_ and 32 characters.',
      );
    }
    return key;
  }

  get mode(): Mode {
    return modeOfKey(this.apiKey) ?? 'sandbox';
  }

  get api(): PartnerApi {
    return new PartnerApi({ baseUrl: this.baseUrl, apiKey: this.apiKey, signal: this.signal });
  }

  /** The API for a listener, which has its own way of waiting for a service that is away. */
  get patientApi(): PartnerApi {
    // The second try keeps to `Retry-After`, which only the client knows.
    return new PartnerApi({ baseUrl: this.baseUrl, apiKey: this.apiKey, signal: this.signal, maxTries: 2 });
  }

  /** The API for a command that writes. @throws CliError with a Live key, unless `--live` was given */
  get writableApi(): PartnerApi {
    if (this.mode === 'live' && !this.live) {
      throw new CliError(
        EXIT.liveRefused,
        'this is a Live key, and the command would spend real money',
        'Add --live when that is what you want; use a Sandbox key to try things.',
      );
    }
    return this.api;
  }

  /** The API of the Sandbox. @throws CliError with a Live key, whatever was given */
  get sandboxApi(): PartnerApi {
    if (this.mode === 'live') {
      throw new CliError(EXIT.liveRefused, 'this command plays the Sandbox, and the key is a Live one');
    }
    return this.api;
  }
}
