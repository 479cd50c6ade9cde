import type { Socket } from 'node:net';

const HEAD_END = '\r\n\r\n';
const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/**
 * The receiver's side of one HTTP/1.1 connection. No HTTP server: on a machine with two cores every microsecond of
 * the receiver is taken from what it measures.
 */
export class ReceivingConnection {
  private unread: Buffer | null = null;
  private firstByteAtMs = 0;

  constructor(
    private readonly socket: Socket,
    private readonly nowMs: () => number,
    /** Called once per request; it is answered when `onRequest` answers true, else by `answer`. */
    private readonly onRequest: (body: Buffer, firstByteAtMs: number, own: ReceivingConnection) => boolean,
  ) {
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.take(chunk));
    // A sender that is killed resets its connections.
    socket.on('error', () => undefined);
  }

  answer(): void {
    if (!this.socket.destroyed) this.socket.write(ANSWER);
  }

  destroy(): void {
    this.socket.destroy();
  }

  private take(chunk: Buffer): void {
    if (this.unread === null) this.firstByteAtMs = this.nowMs();
    const bytes = this.unread ? Buffer.concat([this.unread, chunk]) : chunk;
    const body = bodyOf(bytes);
    this.unread = body ? null : bytes;
    if (body && this.onRequest(body, this.firstByteAtMs, this)) this.answer();
  }
}

/** The body when it is all there; senders do not pipeline. */
function bodyOf(bytes: Buffer): Buffer | null {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return null;
  const length = /\r\ncontent-length: (\d+)/i.exec(bytes.toString('latin1', 0, end))?.[1];
  if (length === undefined) throw new Error('a request without Content-Length');
  const body = bytes.subarray(end + HEAD_END.length);
  return body.length >= Number(length) ? body : null;
}
