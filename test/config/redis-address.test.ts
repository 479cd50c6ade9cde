import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/index.js';
import { testEnvironment } from '../harness/settings.js';

const load = (REDIS_URL: string) =>
  loadConfig(testEnvironment('postgres://user@localhost/db', { REDIS_URL })).redis;

describe('REDIS_URL', () => {
  it.each([
    'redis://localhost',
    'redis://:pass%40word@localhost:6380/2',
    'rediss://user:pass@redis.internal',
  ])('accepts a single server: %s', (url) => expect(load(url)).toEqual({ topology: 'single', url }));

  it('accepts an uppercase scheme: REDISS means TLS', () => {
    expect(load('REDISS://h')).toEqual({ topology: 'single', url: 'rediss://h' });
    expect(load('REDISS+Sentinel://h/m')).toMatchObject({ topology: 'sentinel', tls: true });
  });

  it('accepts sentinels with all their settings', () => {
    const options = 'sentinel_username=watch&sentinel_password=a%2Bb+c%26';
    expect(
      load(`rediss+sentinel://user:p%40s%3As@s1:26380,[::1]:26379,s3/my-primary.1/3?${options}`),
    ).toEqual({
      topology: 'sentinel',
      tls: true,
      login: { username: 'user', password: 'p@s:s' },
      sentinels: [
        { host: 's1', port: 26380 },
        { host: '::1', port: 26379 },
        { host: 's3', port: 26379 },
      ],
      primary: 'my-primary.1',
      database: 3,
      sentinelLogin: { username: 'watch', password: 'a+b+c&' },
    });
    expect(load('redis+sentinel://s1/mymaster')).toEqual({
      topology: 'sentinel',
      tls: false,
      login: {},
      sentinels: [{ host: 's1', port: 26379 }],
      primary: 'mymaster',
      database: 0,
      sentinelLogin: {},
    });
  });

  it.each([
    ['http://hidden-part@h', 'must start with'],
    ['redis:hidden-part', 'must start with'],
    ['redis+sentinel://:hidden-part@/@h/mymaster', 'percent-encoded'],
    ['redis://:hidden-part@h1:1,h2:2', 'redis+sentinel://'],
    ['redis://:hidden-part%zz@h', 'percent sign'],
    ['redis+cluster://:hidden-part@h', 'must start with'],
    ['redis+sentinel://:hidden-part@h1,h2', 'name of the primary as the sentinels know it'],
    ['redis+sentinel://:hidden-part@h1/my master', 'name of the primary as the sentinels know it'],
    ['redis+sentinel://:hidden-part@h1/mymaster/x', 'name of the primary as the sentinels know it'],
    ['redis+sentinel://h1/mymaster?hidden-part', 'only the options'],
    ['redis+sentinel://h1/mymaster?sentinel_password=hidden-part&db=1', 'only the options'],
    ['redis+sentinel://h1/mymaster?sentinel_username=hidden-part', 'user without a password'],
    ['redis+sentinel://hidden-part@h1/mymaster', 'user without a password'],
    ['redis+sentinel://:hidden-part@h1,/mymaster', 'host1:port,host2:port'],
    ['redis+sentinel://:hidden-part@h1:0/mymaster', 'host1:port,host2:port'],
    ['redis+sentinel://:hidden-part@h1:70000/mymaster', 'host1:port,host2:port'],
    ['redis+sentinel://:hidden-part@::1/mymaster', 'host1:port,host2:port'],
  ])('refuses %s in one line that repeats none of it', (url, problem) => {
    let refused: unknown;
    try {
      load(url);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(ConfigError);
    const { problems } = refused as ConfigError;
    expect(problems).toEqual([expect.stringMatching(/^REDIS_URL /)]);
    expect(problems[0]).toContain(problem);
    expect(problems[0]).not.toContain('hidden');
  });
});
