import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisChannel } from '../../src/infra/jobs/signals/redis-channel.js';
import { openRedis } from '../../src/infra/redis-client.js';
import { freePort } from '../../chaos/free-port.js';
import { eventually } from '../harness/index.js';
import { answers, askRedis, MEMORY_ONLY, ON_LOOPBACK, redisMissing, RedisProcess } from '../harness/redis.js';

const missing = redisMissing();
if (missing) console.warn(`signals over Redis are not tested: ${missing}`);

describe.skipIf(missing !== null)('a signal over Redis (D51)', () => {
  let port: number;
  let server: RedisProcess;

  beforeAll(async () => {
    port = await freePort();
    server = RedisProcess.launch(['--port', String(port), ...ON_LOOPBACK, ...MEMORY_ONLY]);
    await eventually('Redis answers', () => answers({ port }));
  });
  afterAll(() => server?.kill());

  it('is received once the server allows the user to subscribe, and until then the log says why not', async () => {
    await askRedis({ port }, (client) => client.call('ACL', 'SETUSER', 'default', 'resetchannels'));
    const lines: string[] = [];
    const logger = pino({}, { write: (line: string) => void lines.push(line) });
    const redis = openRedis({ topology: 'single', url: `redis://127.0.0.1:${port}` }, 'wait');
    const channel = new RedisChannel(redis, logger);
    const heard: string[] = [];
    try {
      channel.listen((text) => heard.push(text));
      await eventually('the refusal is in the log', () => lines.some((line) => line.includes('NOPERM')));
      await askRedis({ port }, (client) => client.call('ACL', 'SETUSER', 'default', 'allchannels'));
      await eventually('a signal is heard', async () => {
        await channel.send('hello');
        return heard.includes('hello');
      });
      expect(lines.some((line) => line.includes('signals.connection_lost'))).toBe(true);
    } finally {
      await channel.close();
      redis.disconnect();
    }
  });
});
