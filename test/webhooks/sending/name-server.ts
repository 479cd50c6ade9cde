import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterThisTest } from './sender.js';

/** The records of a name. A `cname` is sent before the addresses, which then belong to it. */
export interface NameRecords {
  readonly a?: readonly string[];
  readonly aaaa?: readonly string[];
  readonly cname?: string;
  /** Types that get no response. */
  readonly silent?: readonly ('A' | 'AAAA')[];
  /** Delay of the A response, in milliseconds. */
  readonly delayOfA?: number;
  /** Every query gets SERVFAIL. */
  readonly fails?: boolean;
}

/** Records, or a function of how often the type was queried before. */
export type Zone = Record<string, NameRecords | ((asked: number) => NameRecords)>;

const TYPE = { A: 1, CNAME: 5, AAAA: 28 } as const;
const SERVER_FAILURE = 2;
const NAME_ERROR = 3;

/** A DNS server on loopback UDP, always with TTL 0, and NXDOMAIN for names outside its zone. */
export class NameServer {
  /** Queries such as `A name`, in order. */
  readonly questions: string[] = [];

  private constructor(
    private readonly socket: Socket,
    private readonly zone: Zone,
  ) {}

  static async start(zone: Zone): Promise<NameServer> {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    afterThisTest(() => socket.close());
    const server = new NameServer(socket, zone);
    socket.on('message', (query, from) => server.answer(query, from));
    return server;
  }

  /** The address in the form of `setServers`. */
  get address(): string {
    return `127.0.0.1:${this.socket.address().port}`;
  }

  private answer(query: Buffer, from: RemoteInfo): void {
    const { name, type, end } = readQuestion(query);
    const question = `${type === TYPE.AAAA ? 'AAAA' : 'A'} ${name}`;
    const entry = this.zone[name];
    const asked = this.questions.filter((before) => before === question).length;
    this.questions.push(question);
    const records = typeof entry === 'function' ? entry(asked) : entry;
    if (records?.silent?.includes(type === TYPE.AAAA ? 'AAAA' : 'A')) return;
    const answers = records && !records.fails ? answersTo(records, type) : [];
    const code = records ? (records.fails ? SERVER_FAILURE : 0) : NAME_ERROR;
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8580 | code, 2); // an authoritative answer, recursion available
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(answers.length, 6);
    const reply = Buffer.concat([head, query.subarray(12, end), ...answers]);
    const send = (): void => this.socket.send(reply, from.port, from.address);
    if (type !== TYPE.A || !records?.delayOfA) return send();
    const timer = setTimeout(send, records.delayOfA);
    this.socket.once('close', () => clearTimeout(timer));
  }
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function answersTo({ a = [], aaaa = [], cname }: NameRecords, type: number): Buffer[] {
  const owner = cname ? encodeName(cname) : Buffer.from([0xc0, 12]); // a pointer to the question
  const alias = cname ? [record(Buffer.from([0xc0, 12]), TYPE.CNAME, encodeName(cname))] : [];
  const addresses = type === TYPE.AAAA ? aaaa.map(ipv6Bytes) : a.map(ipv4Bytes);
  return [...alias, ...addresses.map((bytes) => record(owner, type, bytes))];
}

function record(owner: Buffer, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2); // IN; the TTL stays 0
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, fixed, data]);
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function ipv4Bytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number));
}

function ipv6Bytes(address: string): Buffer {
  const groups = new URL(`https://[${address}]/`).hostname.slice(1, -1).split('::');
  const [left, right = []] = groups.map((half) => (half === '' ? [] : half.split(':')));
  const middle = Array<string>(8 - left!.length - right.length).fill('0');
  const all = groups.length === 1 ? left! : [...left!, ...middle, ...right];
  return Buffer.from(all.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff]));
}
