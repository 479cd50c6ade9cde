import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Maximum bytes of TLS overhead, in a handshake and again between two requests: certificates, tickets, framing. A usual
 * handshake has 3 to 6 KB. Verifying 32 KB of certificates takes up to 0.2 s of CPU, a flood of key updates 30 ms.
 */
export const MAX_TLS_OVERHEAD_BYTES = 32 * 1_024;
/** Maximum bytes passed to OpenSSL before other connections get their turn. */
const SLICE_BYTES = 4 * 1_024;

/** The server sent too many TLS messages without data. */
export class TlsFlood extends Error {
  readonly code = 'TLS_FLOOD';
}

export interface MeterOptions {
  /** Bytes of data that TLS has decrypted so far. */
  dataBytes(): number;
  /** Called before OpenSSL works on some bytes. @throws Error that closes the connection */
  assertMayGoOn(): void;
  /** Receives the CPU time of this thread for some bytes, in milliseconds. */
  spent(cpuMs: number): void;
}

/**
 * Meters the raw bytes of a TLS connection before OpenSSL gets them. OpenSSL works on the event loop, and a server
 * chooses what a client computes before it has proven who it is. Pass this stream to TLS instead of the socket.
 */
export class MeteredConnection extends Duplex {
  private meter: MeterOptions | null = null;
  private rawBytes = 0;
  private rawBytesBefore = 0;
  private dataBytesBefore = 0;
  private wanted: (() => void) | null = null;

  constructor(private readonly socket: Socket) {
    super();
    socket.on('data', (chunk: Buffer) => void this.feed(chunk));
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  /** Call before anything is read. */
  measure(meter: MeterOptions): void {
    this.meter = meter;
  }

  /** Resets the byte count after the handshake, and when another request is sent. */
  renewAllowance(): void {
    this.rawBytesBefore = this.rawBytes;
    this.dataBytesBefore = this.meter?.dataBytes() ?? 0;
  }

  private async feed(chunk: Buffer): Promise<void> {
    this.socket.pause();
    for (let at = 0; at < chunk.length && !this.destroyed; at += SLICE_BYTES) {
      if (at > 0) await nextTurn();
      if (!this.destroyed && !this.pushSlice(chunk.subarray(at, at + SLICE_BYTES))) await this.whenWanted();
    }
    this.socket.resume();
  }

  /** False while TLS accepts no more. */
  private pushSlice(slice: Buffer): boolean {
    this.rawBytes += slice.length;
    try {
      this.meter?.assertMayGoOn();
      const before = process.threadCpuUsage();
      const wantsMore = this.push(slice);
      const { user, system } = process.threadCpuUsage(before);
      this.meter?.spent((user + system) / 1_000);
      this.assertAllowance();
      return wantsMore;
    } catch (error) {
      this.destroy(error as Error);
      return false;
    }
  }

  private whenWanted(): Promise<void> {
    return new Promise((resolve) => (this.wanted = resolve));
  }

  /** @throws TlsFlood */
  private assertAllowance(): void {
    const data = (this.meter?.dataBytes() ?? 0) - this.dataBytesBefore;
    // TLS has not seen the bytes that are still buffered here.
    const raw = this.rawBytes - this.readableLength - this.rawBytesBefore;
    if (raw - data > MAX_TLS_OVERHEAD_BYTES) throw new TlsFlood();
  }

  override _read(): void {
    this.wanted?.();
    this.wanted = null;
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.socket.write(chunk, encoding, callback);
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.socket.end(callback);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.socket.destroy();
    callback(error);
  }
}
