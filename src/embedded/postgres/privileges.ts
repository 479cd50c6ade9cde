import { execFile } from 'node:child_process';
import { access, constants, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { EmbeddedPostgresError } from './errors.js';

/** The system user that runs PostgreSQL and owns its files. */
export interface SystemAccount {
  readonly uid: number;
  readonly gid: number;
}

export const ROOT = 0;
/** Unprivileged accounts in order of preference. The last resort is the id that Linux reserves for "nobody". */
const ACCOUNT_NAMES = ['postgres', 'nobody'];
const OVERFLOW_ACCOUNT: SystemAccount = { uid: 65534, gid: 65534 };

/** Bits of the capability sets in /proc/self/status (capabilities(7)). */
const CAP_DAC_OVERRIDE = 1n << 1n;
const CAP_DAC_READ_SEARCH = 1n << 2n;
const CAP_SETPCAP = 1n << 8n;

/**
 * The account for PostgreSQL, which refuses to run as root (D2). Undefined when this process is not root, because
 * PostgreSQL then runs as the same user.
 * @param owner current owner of the data directory. A cluster of an ordinary user stays that user's; otherwise one
 * start with sudo would lock the user out.
 */
export async function accountForRoot(owner: SystemAccount | undefined): Promise<SystemAccount | undefined> {
  if (process.getuid?.() !== ROOT) return undefined;
  if (owner && owner.uid !== ROOT) return owner;
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const lines = passwd.split('\n').map((line) => line.split(':'));
  const entry = ACCOUNT_NAMES.map((name) => lines.find((line) => line[0] === name)).find(Boolean);
  return entry ? { uid: Number(entry[2]), gid: Number(entry[3]) } : OVERFLOW_ACCOUNT;
}

/**
 * The kernel reports a parent's death only to a child that registered while the parent was alive. `$0` is the expected
 * parent. A different parent means that the expected one had already died.
 */
const UNLESS_ORPHANED = 'test "$PPID" = "$0" || exit 1; exec "$@"';

/**
 * Command prefix that runs PostgreSQL as `account` and stops it (SIGINT, the fast shutdown) when this process is killed
 * at any moment. Empty when neither is needed or possible.
 *
 * Trap: Linux sends the parent-death signal when the *thread* that spawned ends. Never start the server from a worker
 * thread that does not outlive it.
 * @throws EmbeddedPostgresError as root when there is no `setpriv`
 */
export async function commandPrefix(account: SystemAccount | undefined): Promise<string[]> {
  const setpriv = process.platform === 'linux' ? await findOnPath('setpriv') : undefined;
  if (!setpriv) {
    if (!account) return [];
    const advice =
      process.platform === 'linux' ? ' and setpriv is missing: install util-linux,' : ' on this platform:';
    throw new EmbeddedPostgresError(
      `PostgreSQL does not run as root${advice} start as another user, or set DATABASE_URL`,
    );
  }
  const flags = account ? [...identityFlags(account), ...(await capabilityFlags())] : [];
  if (!(await knowsDeathSignal(setpriv))) return flags.length > 0 ? [setpriv, ...flags, '--'] : [];
  flags.push('--pdeathsig', 'INT');
  return [setpriv, ...flags, '--', '/bin/sh', '-c', UNLESS_ORPHANED, String(process.pid)];
}

function identityFlags(account: SystemAccount): string[] {
  return [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups'];
}

/**
 * Lets the unprivileged account pass through root's folders of mode 0700, such as /root, which may contain the project
 * and its node_modules.
 */
async function capabilityFlags(): Promise<string[]> {
  const held = await heldCapabilities();
  if ((held & CAP_SETPCAP) === 0n) return [];
  // Containers usually withhold the narrow capability and grant the broad one.
  const capability =
    (held & CAP_DAC_READ_SEARCH) !== 0n
      ? '+dac_read_search'
      : (held & CAP_DAC_OVERRIDE) !== 0n
        ? '+dac_override'
        : undefined;
  if (!capability) return [];
  // initdb calls access(2), which ignores a non-root user's capabilities without this bit.
  const bits = '--securebits=+no_setuid_fixup';
  return [`--inh-caps=${capability}`, `--ambient-caps=${capability}`, bits];
}

async function heldCapabilities(): Promise<bigint> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '');
  const set = (name: string): bigint =>
    BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]+)$`, 'm').exec(status)?.[1] ?? '0'}`);
  return set('CapPrm') & set('CapBnd');
}

/** util-linux before 2.33 (RHEL 8) has no `--pdeathsig`. */
async function knowsDeathSignal(setpriv: string): Promise<boolean> {
  const help = await promisify(execFile)(setpriv, ['--help']).catch(() => undefined);
  return help?.stdout.includes('--pdeathsig') ?? false;
}

async function findOnPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '/usr/bin:/bin').split(path.delimiter)) {
    const candidate = path.resolve(folder, name);
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return candidate;
  }
  return undefined;
}
