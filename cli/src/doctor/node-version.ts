import type { Finding } from './finding.js';

type Version = readonly [major: number, minor: number];

/**
 * @param version in the form of `process.version`
 * @param engines the package's requirement, such as `>=22.19`
 */
export function nodeFinding(version: string, engines: string): Finding {
  const [running, least] = [versionIn(version), versionIn(engines)];
  if (!isBelow(running, least)) return { check: 'node', status: 'ok', detail: version };
  return {
    check: 'node',
    status: 'bad',
    detail: `${version} is too old. Install Node.js ${least.join('.')} or newer`,
  };
}

function versionIn(text: string): Version {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(text) ?? [];
  return [Number(major), Number(minor)];
}

const isBelow = (version: Version, least: Version): boolean =>
  version[0] < least[0] || (version[0] === least[0] && version[1] < least[1]);
