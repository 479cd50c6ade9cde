import { parseNetwork } from '../infra/network/ip-address.js';

/** The process environment is unusable; `problems` has one line per wrong variable. */
export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(`Configuration is invalid:\n${problems.map((line) => `  - ${line}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

export interface IntegerRange {
  readonly min: number;
  readonly max: number;
}

/** Reads variables one by one and collects every problem, so that a boot reports all of them at once. */
export class EnvReader {
  readonly problems: string[] = [];

  constructor(private readonly env: NodeJS.ProcessEnv) {}

  /**
   * The value, or undefined when the variable is unset or empty. Drops a leading byte order mark, as in values from a
   * file saved on Windows.
   */
  text(name: string): string | undefined {
    const value = this.env[name]?.replace(/^\uFEFF/, '');
    return value === '' ? undefined : value;
  }

  integer(name: string, fallback: number, range: IntegerRange): number {
    const text = this.text(name);
    if (text === undefined) return fallback;
    const value = this.parseInteger(text, range);
    if (value !== null) return value;
    this.problems.push(`${name} must be a whole number from ${range.min} to ${range.max}`);
    return fallback;
  }

  integers(name: string, fallback: readonly number[], range: IntegerRange): readonly number[] {
    const text = this.text(name);
    if (text === undefined) return fallback;
    const values = text.split(',').map((part) => this.parseInteger(part.trim(), range));
    if (values.every((value) => value !== null)) return values;
    this.problems.push(
      `${name} must be whole numbers from ${range.min} to ${range.max}, separated by commas`,
    );
    return fallback;
  }

  flag(name: string, fallback: boolean): boolean {
    const text = this.text(name);
    if (text === undefined) return fallback;
    if (text === 'true' || text === 'false') return text === 'true';
    this.problems.push(`${name} must be true or false`);
    return fallback;
  }

  choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const text = this.text(name);
    if (text === undefined) return fallback;
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    this.problems.push(`${name} must be one of ${choices.join(', ')}`);
    return fallback;
  }

  /** One or more of `choices`, comma-separated; returned in the order of `choices`, each once. */
  choices<T extends string>(name: string, fallback: readonly T[], choices: readonly T[]): readonly T[] {
    const text = this.text(name);
    if (text === undefined) return fallback;
    const given = text.split(',').map((part) => part.trim());
    const found = choices.filter((choice) => given.includes(choice));
    if (given.every((part) => found.some((choice) => choice === part))) return found;
    this.problems.push(`${name} must be one or more of ${choices.join(', ')}, separated by commas`);
    return fallback;
  }

  url(name: string, protocols: readonly string[]): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    this.problems.push(
      `${name} must be a URL that begins with ${protocols.map((p) => `${p}//`).join(' or ')}`,
    );
    return undefined;
  }

  /** Comma-separated addresses or networks: `192.0.2.1,2001:db8::/32`. */
  cidrs(name: string): readonly string[] {
    const given = (this.text(name) ?? '').split(',').flatMap((part) => part.trim() || []);
    const networks = given.map(parseNetwork);
    if (networks.every((network) => network !== null)) return networks;
    this.problems.push(`${name} must be addresses or networks (CIDR, host bits zero), separated by commas`);
    return [];
  }

  private parseInteger(text: string, range: IntegerRange): number | null {
    if (!/^-?\d{1,15}$/.test(text)) return null;
    const value = Number(text);
    return value >= range.min && value <= range.max ? value : null;
  }
}
