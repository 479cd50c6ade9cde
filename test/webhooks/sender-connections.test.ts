import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { TargetPolicy } from '../../src/webhooks/target-policy.js';
import { nameServerResolver } from '../../src/infra/network/resolve-addresses.js';
import { watchDials } from './sending/canary.js';
import { NameServer } from './sending/name-server.js';
import { connections } from './sending/receivers.js';
import { senderWith, send } from './sending/sender.js';

const PUBLIC = '127.0.0.1';
const PRIVATE = '127.0.0.2';

/** The policy with a loopback address that stands for a public one. */
class OnePublicAddress extends TargetPolicy {
  constructor() {
    super({ webhooks: { allowPrivateTargets: true } });
  }

  override refusesAddress(address: string): boolean {
    return address !== PUBLIC;
  }
}

/** Answers each request with 200, and keeps its connections. */
async function receiver(): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const port = await connections((socket) => {
    sockets.push(socket);
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  });
  return { port, sockets };
}

/** Timers run first after a stall: what has come meanwhile is read a turn later. */
const afterReply = async (): Promise<void> => {
  await sleep(30);
  await nextTurn();
  await nextTurn();
};

describe('connections that are kept', () => {
  it('go where they were vetted to go; a new one to a name that has moved inside is refused', async () => {
    const { port, sockets } = await receiver();
    let address = PUBLIC;
    const nameServer = await NameServer.start({ 'moved.test': () => ({ a: [address] }) });
    const resolve = nameServerResolver(() => [nameServer.address]);
    const sender = senderWith({ policy: new OnePublicAddress(), resolve });
    const dials = watchDials();
    const url = `http://moved.test:${port}/hook`;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
    await afterReply();
    address = PRIVATE;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: true });
    expect([nameServer.questions.length, sockets.length]).toEqual([2, 1]);
    sockets[0]!.destroy();
    await afterReply();
    expect(await send(sender, url)).toMatchObject({ outcome: 'failed', error: 'target_refused' });
    expect(dials).toEqual([`${PUBLIC} ${port}`]);
    expect(nameServer.questions).toHaveLength(4);
  });

  it('are not opened beside one that is busy without a new look at the name', async () => {
    const { port } = await receiver();
    let address = PUBLIC;
    const nameServer = await NameServer.start({ 'moved.test': () => ({ a: [address] }) });
    const resolve = nameServerResolver(() => [nameServer.address]);
    const sender = senderWith({ policy: new OnePublicAddress(), resolve });
    const url = `http://moved.test:${port}/hook`;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered' });
    await afterReply();
    address = PRIVATE;
    const results = await Promise.all([send(sender, url), send(sender, url)]);
    expect(results.map(({ error }) => error).toSorted()).toEqual(['target_refused', null].toSorted());
    expect(results.filter(({ reusedConnection }) => reusedConnection)).toHaveLength(1);
  });

  it('are kept apart by name and by port, also on one address', async () => {
    const [first, second] = [await receiver(), await receiver()];
    const nameServer = await NameServer.start({ 'a.test': { a: [PUBLIC] }, 'b.test': { a: [PUBLIC] } });
    const sender = senderWith({ resolve: nameServerResolver(() => [nameServer.address]) });
    for (const url of [
      `http://a.test:${first.port}/`,
      `http://b.test:${first.port}/`,
      `http://a.test:${second.port}/`,
    ]) {
      expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
      await afterReply();
    }
    expect([first.sockets.length, second.sockets.length]).toEqual([2, 1]);
    expect(await send(sender, `http://a.test:${first.port}/other`)).toMatchObject({ reusedConnection: true });
  });
});
