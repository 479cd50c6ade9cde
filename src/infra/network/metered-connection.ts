import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Bytes of TLS itself that a server may send: a handshake, and between two requests tickets and the framing of records.
 * Usual handshakes have 3 to 6 KB. A certificate chain of 32 KB costs 0.3 s at most, a flood of key updates 30 ms.
 */
export const MAX_TLS_OVERHEAD_BYTES = 32 * 1_024;
/** OpenSSL works on so many bytes at most before other connections get a turn. */
const SLICE_BYTES = 8 * 1_024;

/** The server sent more TLS messages without data than a proper one needs. */
export class TlsFlood extends Error {
  readonly code = 'TLS_FLOOD';
}

export interface MeterOptions {
  /** The bytes of data that TLS has made of what came. */
  dataBytes(): number;
  /** Called before OpenSSL works on some bytes. @throws Error that closes the connection */
  assertMayGoOn(): void;
  /** Told the CPU time of this thread that the work on some bytes took, in milliseconds. */
  spent(cpuMs: number): void;
}

/**
 * The raw bytes of a TLS connection, metered before OpenSSL gets them: it works on the event loop, and what it computes
 * before a server has proven who it is, the server chooses. TLS reads from and writes to this stream instead of the
 * socket.
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

  /** The allowance begins anew: the handshake has ended, or another request leaves. */
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

  /** False when TLS takes no more for now. */
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
    // TLS has not seen yet what is still buffered here.
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
