import { type CredentialChoice, credentialOf, placeFor, wantedMode } from './credentials/credential.js';
import type { Environment } from './credentials/paths.js';
import type { Mode } from './credentials/stored-credentials.js';
import { CliError, EXIT } from './exit-codes.js';
import { PartnerApi } from './partner-api.js';
import { useProxyFor } from './proxy.js';
import type { Output } from './terminal/output.js';

export interface ContextOptions extends CredentialChoice {
  readonly output: Output;
  /** Aborts on Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
}

/** Everything that a command uses: the API, the key, the output. */
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

  /** Base URL of the API. */
  get baseUrl(): string {
    return this.baseUrlFor(wantedMode(this.options));
  }

  /** The base URL for a key of this mode. `login` uses it for a key that is not stored yet. */
  baseUrlFor(mode: Mode): string {
    return placeFor(mode, this.options);
  }

  /** @throws CliError without a key for this base URL */
  get mode(): Mode {
    return credentialOf(this.options).mode;
  }

  /** @throws CliError without a key for this base URL */
  get api(): PartnerApi {
    return this.client();
  }

  /** The API for a listener, which retries on its own while the service is unreachable. */
  get patientApi(): PartnerApi {
    // The client makes the second try, because only the client knows `Retry-After`.
    return this.client(2);
  }

  /**
   * The API for a command that writes.
   * @throws CliError with a Live key but without `--live`
   */
  get writableApi(): PartnerApi {
    if (this.mode === 'live' && !this.live) {
      throw new CliError(
        EXIT.liveRefused,
        'this command would change Live objects or spend real money, because the key is a Live key',
        'Add --live to confirm, or use a Sandbox key to try it.',
      );
    }
    return this.api;
  }

  /**
   * The API for Sandbox commands.
   * @throws CliError with a Live key, even with `--live`
   */
  get sandboxApi(): PartnerApi {
    if (this.mode === 'live') {
      throw new CliError(
        EXIT.liveRefused,
        'this command works only in the Sandbox, but the key is a Live key',
        'Use a Sandbox key: omit --live, or set ESIM_API_KEY to one.',
      );
    }
    return this.api;
  }

  /**
   * The API for a key that is not stored yet.
   * @throws CliError for an unsupported or invalid proxy
   */
  apiAt(baseUrl: string, apiKey: string, maxTries?: number): PartnerApi {
    useProxyFor(baseUrl, this.environment);
    const tries = maxTries === undefined ? {} : { maxTries };
    return new PartnerApi({ baseUrl, apiKey, signal: this.signal, ...tries });
  }

  private client(maxTries?: number): PartnerApi {
    const { key, baseUrl } = credentialOf(this.options);
    return this.apiAt(baseUrl, key, maxTries);
  }
}
