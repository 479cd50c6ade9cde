import { getCACertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig, parseDatabaseUrl } from '../../src/config/index.js';
import { testEnvironment } from '../harness/settings.js';

const PASSWORD = ['hidden', 'part'].join('-');

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(testEnvironment('postgres://user@localhost/db', env));
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}

describe('DATABASE_URL', () => {
  it('accepts a leading byte order mark', () => {
    const url = 'postgres://u@localhost/marked';
    const config = loadConfig(testEnvironment(url, { DATABASE_URL: `\uFEFF${url}` }));
    expect(config.databaseUrl).toBe(url);
  });

  it.each([
    [`postgres://u:${PASSWORD}@/db?host=/folder`, { host: '/folder', user: 'u', database: 'db' }],
    [`postgresql://u@/db?host=/a%20folder&port=5433`, { host: '/a folder', port: 5433 }],
    ['postgres:///db?host=/folder&user=u', { host: '/folder', user: 'u', database: 'db' }],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/db', { host: '/var/run/postgresql', database: 'db' }],
    ['socket:/folder?db=esim', { host: '/folder', database: 'esim' }],
    ['postgres://u@[::1]:5433/db', { host: '::1', port: 5433 }],
    ['postgres://u%40tenant:p%2Fq@db.example.com/db', { user: 'u@tenant', password: 'p/q' }],
    ['postgres://u@db.example.com/db?sslmode=no-verify', { ssl: { rejectUnauthorized: false } }],
    ['postgres://u@db.example.com/db?sslmode=disable', { ssl: false }],
    [
      'postgres://u@db.example.com/db?sslrootcert=system',
      { ssl: { ca: expect.arrayContaining(getCACertificates('default').slice(0, 2)) as unknown } },
    ],
    ['postgres://u@db.example.com/db?sslmode=verify-full&sslrootcert=system', { host: 'db.example.com' }],
    ['POSTGRES://u@db.example.com', { host: 'db.example.com', user: 'u' }],
  ])('accepts %s', (url, address) => {
    expect(problemsOf({ DATABASE_URL: url, DATABASE_DIRECT_URL: url })).toEqual([]);
    expect(parseDatabaseUrl(url)).toMatchObject(address);
  });

  it.each([
    [`mysql://u:${PASSWORD}@h/db`, 'must begin with postgres:// or postgresql://'],
    [`host=h dbname=db password=${PASSWORD}`, 'must begin with postgres:// or postgresql://'],
    ['postgres:db', 'must begin with postgres:// or postgresql://'],
    [`postgres://u:${PASSWORD}@h1:5432,h2:5432/db`, /^names several hosts: name one/],
    [`postgres://u:${PASSWORD}@/db?host=h1,h2`, /^names several hosts: name one/],
    [`postgres://u:${PASSWORD}/x@h/db`, /^is not a valid URL: percent-encode special characters/],
    [`postgres://u:${PASSWORD}#x@h/db`, /^is not a valid URL: percent-encode special characters/],
    [`postgres://u:${PASSWORD}@h/db?port=99999`, 'has a port that is not a number from 1 to 65535'],
    [`postgres://u:${PASSWORD}@h/db?sslmode=verify_full`, /^has an unknown sslmode: use one of disable, /],
    [
      `postgres://u:${PASSWORD}@h/db?sslmode=verify-full&sslrootcert=/none`,
      /^names a file that cannot be read \(ENOENT\)/,
    ],
    [
      `postgres://u:${PASSWORD}@h/db?sslrootcert=system&sslmode=require`,
      'has sslrootcert=system with a weaker sslmode: use sslmode=verify-full, or leave sslmode out',
    ],
    [`postgres://u:${PASSWORD}@h/db?sslmode=verify-ca&uselibpqcompat=true`, /^has settings that contradict/],
  ])('is refused with a reason that does not repeat it: %s', (url, reason) => {
    for (const name of ['DATABASE_URL', 'DATABASE_DIRECT_URL']) {
      const problems = problemsOf({ [name]: url });
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(new RegExp(`^${name} `));
      const said = problems[0]!.slice(name.length + 1);
      if (typeof reason === 'string') expect(said).toBe(reason);
      else expect(said).toMatch(reason);
      expect(said).not.toContain(PASSWORD);
    }
  });
});
