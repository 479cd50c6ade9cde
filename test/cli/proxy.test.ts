import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ignoredProxy, proxyFor } from '../../cli/src/proxy.js';
import { startTestService, type TestService } from '../harness/index.js';
import { CliUser, jsonLines } from './cli-process.js';

let service: TestService;
let user: CliUser;
let proxy: Server;
let proxyUrl: string;
const asked: string[] = [];
const sockets = new Set<Socket>();

/** Only this proxy can resolve `api.behind.test`. */
beforeAll(async () => {
  service = await startTestService();
  const { sandboxKey } = await service.createPartner();
  const api = new URL(service.process.api?.url ?? '');
  proxy = createServer((request, response) => {
    asked.push(request.url ?? '');
    const { pathname, search } = new URL(request.url ?? '');
    request.pipe(
      httpRequest(
        {
          host: api.hostname,
          port: api.port,
          path: pathname + search,
          method: request.method,
          headers: request.headers,
        },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        },
      ).on('error', () => response.destroy()),
    );
  });
  proxy.on('connect', (request, socket: Socket) => {
    asked.push(request.url ?? '');
    const onward = connect(Number(api.port), api.hostname, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    for (const each of [socket, onward]) each.on('error', () => undefined);
  });
  proxy.on('connection', (socket) => sockets.add(socket));
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  proxyUrl = `http://user:pass-word@127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  user = new CliUser({ ESIM_API_KEY: sandboxKey, ESIM_BASE_URL: 'http://api.behind.test' });
});
afterAll(async () => {
  user.remove();
  for (const socket of sockets) socket.destroy();
  proxy.close();
  await service.stop();
});

describe('a proxy from the environment', () => {
  it.each(['HTTP_PROXY', 'ALL_PROXY'])('carries the API calls when %s is set', async (name) => {
    asked.length = 0;
    const listed = await user.spawn(['orders', 'list'], { env: { [name]: proxyUrl } });
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(asked.join()).toContain('api.behind.test');
  });

  it('is named by doctor without its password, and resolves the host name', async () => {
    const { code, stdout } = await user.spawn(['doctor', '--json'], { env: { HTTP_PROXY: proxyUrl } });
    expect(code, stdout).toBe(0);
    const { origin } = new URL(proxyUrl);
    expect(jsonLines(stdout).slice(0, 3)).toMatchObject([
      { check: 'proxy', status: 'ok', detail: `http://api.behind.test through ${origin}` },
      { check: 'reach', status: 'ok' },
      { check: 'name', status: 'ok', detail: `checked by the proxy ${origin}` },
    ]);
    expect(stdout).not.toContain('pass-word');
  });

  it.each([
    ['api.behind.test', { HTTP_PROXY: 'http://p' }, 'http://p'],
    ['api.behind.test', { http_proxy: 'http://p' }, 'http://p'],
    ['api.behind.test', { all_proxy: 'http://p' }, 'http://p'],
    ['api.behind.test', { HTTP_PROXY: 'p:80' }, 'http://p'],
    [
      'api.behind.test',
      { HTTP_PROXY: 'http://p', HTTPS_PROXY: 'socks5://s', ALL_PROXY: 'no proxy' },
      'http://p',
    ],
    ['api.behind.test', { HTTP_PROXY: 'http://p', NO_PROXY: 'api.behind.test:81' }, 'http://p'],
    ['api.behind.test', { HTTP_PROXY: 'http://p', NO_PROXY: 'hind.test' }, 'http://p'],
    ['api.behind.test', { HTTP_PROXY: 'http://p', NO_PROXY: ',' }, 'http://p'],
    ['api.behind.test', { HTTP_PROXY: 'http://p', NO_PROXY: 'api.behind.test' }, null],
    ['api.behind.test', { HTTP_PROXY: 'http://p', NO_PROXY: '.behind.test' }, null],
    ['api.behind.test', { HTTP_PROXY: 'http://p', NO_PROXY: 'other.test, behind.test' }, null],
    ['api.behind.test:81', { HTTP_PROXY: 'http://p', NO_PROXY: 'API.behind.test:81' }, null],
    ['api.behind.test', { HTTP_PROXY: 'http://p', NO_PROXY: '*' }, null],
    ['127.0.0.1:3000', { HTTP_PROXY: 'http://p' }, null],
    ['127.0.0.1:3000', { ALL_PROXY: 'socks5://s' }, null],
  ])('is chosen for %s with %j: %s', (host, environment, proxyOfHost) => {
    expect(proxyFor(`http://${host}`, environment)).toBe(proxyOfHost);
  });

  it.each([
    ['HTTP_PROXY', 'socks5://127.0.0.1:1', /^error: HTTP_PROXY is a SOCKS proxy, which is not supported\n/],
    ['all_proxy', 'socks5h://127.0.0.1:1', /^error: all_proxy is a SOCKS proxy, which is not supported\n/],
    ['ALL_PROXY', 'ftp://127.0.0.1:1', /^error: ALL_PROXY is not a valid proxy URL\n/],
  ])('stops the call and explains the fix when %s is %s', async (name, value, message) => {
    const env = { [name]: value };
    const refused = await user.run(['orders', 'list'], { env });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(message);
    expect(refused.stderr).toMatch(/\nSet HTTP_PROXY to a URL such as .* NO_PROXY=api\.behind\.test to call/);
    const { code, stdout } = await user.run(['doctor'], { env });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^BAD +proxy +\w+_(PROXY|proxy) is .* Set HTTP_PROXY to/);
    expect(stdout).toMatch(/^- +reach /m);
  });

  it.each([[['--version']], [['help']], [['verify', '--help']], [['orders']]])(
    'does not stop %j, which makes no call, when the proxy is unsupported',
    async (args) => {
      const env = { HTTP_PROXY: 'socks5://127.0.0.1:1', ALL_PROXY: 'socks5://127.0.0.1:1' };
      const { stdout, stderr } = await user.run(args, { env });
      expect(stdout + stderr).not.toContain('SOCKS');
    },
  );

  it('is named by doctor when it is down', async () => {
    const { code, stdout } = await user.spawn(['doctor'], { env: { HTTP_PROXY: 'http://127.0.0.1:1' } });
    expect(code).toBe(1);
    expect(stdout).toContain(' through http://127.0.0.1:1');
  });

  it('is reported with the fix when this Node.js does not support it', () => {
    const http = process.getBuiltinModule('node:http');
    const { setGlobalProxyFromEnv } = http;
    try {
      Object.assign(http, { setGlobalProxyFromEnv: undefined });
      const ignored = (environment: Record<string, string>) => ignoredProxy('https://api.test', environment);
      expect(ignored({ HTTPS_PROXY: proxyUrl })).toMatch(/^HTTPS_PROXY is set.* Set NODE_USE_ENV_PROXY=1 /);
      expect(ignored({ HTTPS_PROXY: proxyUrl, NODE_USE_ENV_PROXY: '1' })).toBeNull();
      expect(ignored({ ALL_PROXY: proxyUrl, NODE_USE_ENV_PROXY: '1' })).toMatch(
        /^ALL_PROXY is set.* Set HTTPS_PROXY to its URL, and NODE_USE_ENV_PROXY=1 /,
      );
      expect(ignored({ HTTP_PROXY: proxyUrl })).toBeNull();
      expect(ignored({})).toBeNull();
    } finally {
      Object.assign(http, { setGlobalProxyFromEnv });
    }
  });
});
