import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ignoredProxy } from '../../cli/src/proxy.js';
import { startTestService, type TestService } from '../harness/index.js';
import { CliUser, jsonLines } from './cli-process.js';

let service: TestService;
let user: CliUser;
let proxy: Server;
let proxyUrl: string;
const asked: string[] = [];
const sockets = new Set<Socket>();

/** A proxy that alone knows where `api.behind.test` is. */
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
      ),
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

describe('a proxy of the environment', () => {
  it.each(['HTTP_PROXY', 'http_proxy'])('is used for the API when %s is set', async (name) => {
    asked.length = 0;
    const listed = await user.run(['orders', 'list'], { env: { [name]: proxyUrl } });
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(asked.join()).toContain('api.behind.test');
  });

  it('may lack its scheme', async () => {
    const env = { HTTP_PROXY: proxyUrl.replace('http://', '') };
    expect(await user.run(['orders', 'list'], { env })).toMatchObject({ code: 0 });
  });

  it('is named by doctor, without its password, and the name is left to it', async () => {
    const { code, stdout } = await user.run(['doctor', '--json'], { env: { HTTP_PROXY: proxyUrl } });
    expect(code, stdout).toBe(0);
    const { origin } = new URL(proxyUrl);
    expect(jsonLines(stdout).slice(0, 3)).toMatchObject([
      { check: 'proxy', status: 'ok', detail: `http://api.behind.test is called through ${origin}` },
      { check: 'reach', status: 'ok' },
      { check: 'name', status: 'ok', detail: `left to the proxy ${origin}` },
    ]);
    expect(stdout).not.toContain('pass-word');
  });

  it.each([
    ['what NO_PROXY names', 'http://api.behind.test', 'api.behind.test'],
    ['a domain that NO_PROXY names', 'http://api.behind.test', '.behind.test'],
    ['everything', 'http://api.behind.test', '*'],
  ])('is not asked for %s', async (_what, baseUrl, noProxy) => {
    asked.length = 0;
    const env = { HTTP_PROXY: proxyUrl, NO_PROXY: noProxy, ESIM_BASE_URL: baseUrl };
    const { stdout } = await user.run(['doctor'], { env });
    expect(stdout).toMatch(/^BAD +reach/);
    expect(asked).toEqual([]);
  });

  it('is not asked for this machine', async () => {
    asked.length = 0;
    const env = { HTTP_PROXY: proxyUrl, ESIM_BASE_URL: service.process.api?.url ?? '' };
    expect(await user.run(['orders', 'list'], { env })).toMatchObject({ code: 0 });
    expect(asked).toEqual([]);
  });

  it('that is not a URL is named, with what to do', async () => {
    const refused = await user.run(['orders', 'list'], { env: { HTTPS_PROXY: 'socks5://127.0.0.1:1' } });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('HTTPS_PROXY is not the URL of a proxy\nSet it to a URL such as');
  });

  it('that nobody runs is named by doctor', async () => {
    const { code, stdout } = await user.run(['doctor'], { env: { HTTP_PROXY: 'http://127.0.0.1:1' } });
    expect(code).toBe(1);
    expect(stdout).toContain('is called through http://127.0.0.1:1');
  });

  it('that this Node.js cannot use is said, with the cure', () => {
    const http = process.getBuiltinModule('node:http');
    const { setGlobalProxyFromEnv } = http;
    try {
      Object.assign(http, { setGlobalProxyFromEnv: undefined });
      expect(ignoredProxy({ HTTPS_PROXY: proxyUrl })).toMatch(/ Set NODE_USE_ENV_PROXY=1 /);
      expect(ignoredProxy({ HTTPS_PROXY: proxyUrl, NODE_USE_ENV_PROXY: '1' })).toBeNull();
      expect(ignoredProxy({})).toBeNull();
    } finally {
      Object.assign(http, { setGlobalProxyFromEnv });
    }
  });
});
