import type { ListenAddress } from './bounds.js';
import type { EnvReader } from './env-reader.js';

/** The install page for travelers (D63). */
export interface InstallConfig {
  readonly listen: ListenAddress;
  /** The page's origin, with which install links begin; null when no links can be created. */
  readonly url: string | null;
}

const PORTS = { min: 0, max: 65_535 };
const DEFAULT_PORT = 3005;

export interface InstallTerms {
  readonly production: boolean;
  readonly servesPage: boolean;
}

/** In production the address must be known and https, because the link is the credential. */
export function readInstallConfig(read: EnvReader, { production, servesPage }: InstallTerms): InstallConfig {
  const port = read.integer('INSTALL_PORT', DEFAULT_PORT, PORTS);
  const given = read.url('INSTALL_URL', production ? ['https:'] : ['https:', 'http:']);
  if (given !== undefined && new URL(given).origin !== given.replace(/\/$/, ''))
    read.problems.push('INSTALL_URL must be an origin without a path, such as https://install.example.com');
  if (production && servesPage && read.text('INSTALL_URL') === undefined)
    read.problems.push('INSTALL_URL is required with NODE_ENV=production: install links start with it');
  const url = given === undefined ? null : given.replace(/\/$/, '');
  return {
    listen: { host: read.text('INSTALL_HOST') ?? '0.0.0.0', port },
    url: url ?? (production ? null : `http://localhost:${port}`),
  };
}
