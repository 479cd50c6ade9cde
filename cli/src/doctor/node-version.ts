import type { Finding } from './finding.js';

type Version = readonly [major: number, minor: number];

/** Node.js strips types by itself from here on; of its line 23 from 23.6 on. */
const RUNS_TYPESCRIPT: Version = [22, 18];
const RUNS_TYPESCRIPT_23: Version = [23, 6];

/**
 * @param version as `process.version` has it
 * @param engines of the package: `>=22.12`
 */
export function nodeFinding(version: string, engines: string): Finding {
  const check = 'node';
  const [running, least] = [versionIn(version), versionIn(engines)];
  if (isBelow(running, least)) {
    return { check, status: 'bad', detail: `${version}: esim needs Node.js ${least.join('.')} or newer` };
  }
  const wanted = running[0] === 23 ? RUNS_TYPESCRIPT_23 : RUNS_TYPESCRIPT;
  if (!isBelow(running, wanted)) return { check, status: 'ok', detail: version };
  return {
    check,
    status: 'warn',
    detail: `${version}: running .ts files needs ${wanted.join('.')} or newer`,
  };
}

function versionIn(text: string): Version {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(text) ?? [];
  return [Number(major), Number(minor)];
}

const isBelow = (version: Version, least: Version): boolean =>
  version[0] < least[0] || (version[0] === least[0] && version[1] < least[1]);
