import type { Socket } from 'node:net';

const HEAD_END = '\r\n\r\n';

/**
 * One HTTP/1.1 connection with one call under way. No HTTP client: on a machine with two cores every microsecond
 * of the generator is taken from what it measures, and this costs a third of undici.
 */
export class KeepAliveConnection {
  private head: Buffer | null = null;
  private bodyLeft = 0;
  private status = 0;

  constructor(
    private readonly socket: Socket,
    private readonly onAnswer: (status: number) => void,
  ) {
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.take(chunk));
  }

  send(request: string | Buffer): void {
    this.socket.write(request);
  }

  private take(chunk: Buffer): void {
    const body = this.bodyLeft > 0 ? chunk : this.readHead(chunk);
    if (body === null) return;
    this.bodyLeft -= body.length;
    if (this.bodyLeft === 0) this.onAnswer(this.status);
  }

  /** What of `chunk` is body; null while the head is incomplete. */
  private readHead(chunk: Buffer): Buffer | null {
    const bytes = this.head ? Buffer.concat([this.head, chunk]) : chunk;
    const end = bytes.indexOf(HEAD_END);
    this.head = end < 0 ? bytes : null;
    if (end < 0) return null;
    const head = bytes.toString('latin1', 0, end);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) throw new Error(`an answer without Content-Length:\n${head}`);
    this.status = Number(head.slice(9, 12));
    this.bodyLeft = Number(length);
    return bytes.subarray(end + HEAD_END.length);
  }
}
