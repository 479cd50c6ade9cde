import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ConfigError } from '../config/index.js';
import { makeFolder } from './postgres/index.js';

/** Files of the embedded start that must survive a restart. */
export interface DataDirectory {
  readonly root: string;
  readonly postgres: string;
  /** Generated `ADMIN_TOKENS` and `SECRETS_KEYS`, mode 0600. */
  readonly secretsFile: string;
  readonly webhookSecretFile: string;
  /** The demo's keys and the API's address for a shell, mode 0600. */
  readonly demoFile: string;
  /** Purchases of the simulated wholesaler. */
  readonly wholesalerFile: string;
  readonly logFile: string;
  /** Names the process that uses the directory. */
  readonly runningFile: string;
}

/** Opens `DATA_DIR`, creating it with mode 0700. @throws ConfigError when it is not writable */
export function openDataDirectory(env: NodeJS.ProcessEnv): DataDirectory {
  const root = path.resolve(env['DATA_DIR'] || './.data');
  try {
    makeFolder(root);
    const probe = path.join(root, '.writable');
    writeFileSync(probe, '');
  } catch (error) {
    throw new ConfigError([`DATA_DIR ${root} is not writable (${(error as NodeJS.ErrnoException).code})`]);
  }
  return {
    root,
    postgres: path.join(root, 'postgres'),
    secretsFile: path.join(root, 'secrets.env'),
    wholesalerFile: path.join(root, 'wholesaler-simulator.jsonl'),
    webhookSecretFile: path.join(root, 'demo-webhook.json'),
    demoFile: path.join(root, 'demo.env'),
    logFile: path.join(root, 'service.log'),
    runningFile: path.join(root, 'running.json'),
  };
}

/**
 * The environment of the embedded start: development defaults for unset variables, nothing else changed (D2, D35).
 * @throws ConfigError with `NODE_ENV=production`
 */
export function withDevelopmentDefaults(
  env: NodeJS.ProcessEnv,
  directory: DataDirectory,
  databaseUrl: string,
  wholesaler: Readonly<Record<string, string>> = {},
): NodeJS.ProcessEnv {
  return {
    // Serve this machine only, not its network.
    HOST: '127.0.0.1',
    PORTAL_HOST: '127.0.0.1',
    INSTALL_HOST: '127.0.0.1',
    CALLBACK_HOST: '127.0.0.1',
    ...apiUrl(env['PORT'] || '3000'),
    WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
    ...wholesaler,
    ...readOrMakeSecrets(directory.secretsFile),
    ...withoutEmpty(env),
    DATABASE_URL: databaseUrl,
  };
}

/** Local address of the API; empty when the port is invalid, which the check of `PORT` reports. */
function apiUrl(port: string): { readonly API_URL?: string } {
  const url = `http://localhost:${port}`;
  return URL.canParse(url) ? { API_URL: url } : {};
}

function readOrMakeSecrets(file: string): Record<string, string> {
  if (!existsSync(file)) {
    const lines = [
      `ADMIN_TOKENS=portal:${randomBytes(24).toString('hex')}`,
      `SECRETS_KEYS=dev:${randomBytes(32).toString('base64')}`,
    ];
    writeSecretFile(file, `${lines.join('\n')}\n`);
  }
  const pairs = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return Object.fromEntries(
    pairs.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

/** Writes a file of mode 0600 atomically, so that a kill leaves no half-written file for the next start. */
export function writeSecretFile(file: string, content: string): void {
  const draft = `${file}.${process.pid}.draft`;
  writeFileSync(draft, content, { mode: 0o600, flush: true });
  renameSync(draft, file);
}
