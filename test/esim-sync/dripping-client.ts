import { connect, type Socket } from 'node:net';

const PIECE_EVERY_MS = 20;

/** Sends a head at once and then one piece after the other, until the listener hangs up. */
export class DrippingClient {
  private received = '';
  private readonly socket: Socket;
  private readonly startedAt = performance.now();
  private readonly ended: Promise<number>;

  constructor(url: string, head: string, piece: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect(Number(port), hostname);
    this.socket
      .setNoDelay(true)
      .setEncoding('latin1')
      .on('error', () => undefined);
    this.socket.on('data', (text) => (this.received += String(text)));
    this.socket.write(head);
    const timer = setInterval(() => this.socket.write(piece), PIECE_EVERY_MS);
    this.ended = new Promise((resolve) => {
      this.socket.on('close', () => {
        clearInterval(timer);
        resolve(performance.now() - this.startedAt);
      });
    });
  }

  get isOpen(): boolean {
    return !this.socket.closed;
  }

  /** The status of each answer, where no reset overtook it, and how long it took until the listener hung up. */
  async cut(): Promise<{ statuses: number[]; afterMs: number }> {
    const afterMs = await this.ended;
    const statuses = [...this.received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
    return { statuses, afterMs };
  }
}
