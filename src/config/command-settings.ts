import { parseSecretKeys, type SecretKey } from './credentials.js';
import { readDatabaseUrls } from './database-urls.js';
import { ConfigError, EnvReader } from './env-reader.js';

/** The direct database address for `npm run migrate`, whose lock belongs to a session. @throws ConfigError */
export function readDatabaseSettings(env: NodeJS.ProcessEnv): string {
  const read = new EnvReader(env);
  const { databaseDirectUrl } = readDatabaseUrls(read);
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return databaseDirectUrl;
}

interface ResealSettings {
  readonly databaseUrl: string;
  readonly secretKeys: readonly SecretKey[];
}

/** Settings of `npm run reseal`, which bypasses a pooler if there is one. @throws ConfigError */
export function readResealSettings(env: NodeJS.ProcessEnv): ResealSettings {
  const read = new EnvReader(env);
  const settings = {
    databaseUrl: readDatabaseUrls(read).databaseDirectUrl,
    secretKeys: parseSecretKeys(read),
  };
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return settings;
}
