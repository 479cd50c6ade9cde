import { Worker } from 'node:worker_threads';
import { AppError } from '../common/errors/index.js';
import type { QrCode, QrCodeRequest, QrCodeResult } from './draw-qr-code.thread.js';

interface Asked {
  readonly resolve: (drawn: QrCode) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Drawing takes about 20 ms; a thread without a result for this long has hung. */
const DRAW_LIMIT_MS = 15_000;
const MAX_HEAP_MB = 128;

/** The built file when running a build, the TypeScript file when running from source. Node runs either. */
const PROGRAM = new URL(`./draw-qr-code.thread${/\.[a-z]+$/.exec(import.meta.url)![0]}`, import.meta.url);

/** Draws QR codes in a thread, because 18 ms each would block every other call on the event loop (D43). */
export class QrCodeThread {
  private worker: Worker | null = null;
  private readonly asked = new Map<number, Asked>();
  private lastId = 0;

  /** @throws AppError `service_unavailable` when the thread ends without a result */
  draw(text: string): Promise<QrCode> {
    const worker = (this.worker ??= this.start());
    const id = ++this.lastId;
    return new Promise<QrCode>((resolve, reject) => {
      const timer = setTimeout(() => void this.stop(), DRAW_LIMIT_MS).unref();
      this.asked.set(id, { resolve, reject, timer });
      worker.postMessage({ id, text } satisfies QrCodeRequest);
    });
  }

  /** Rejects pending requests; the next call starts another thread. */
  async stop(): Promise<void> {
    const { worker } = this;
    this.forget(worker);
    await worker?.terminate();
  }

  private start(): Worker {
    // No settings or secrets: a thread otherwise gets a copy of the environment.
    const worker = new Worker(PROGRAM, {
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    worker.unref();
    worker.on('message', (result: QrCodeResult) => this.settle(result));
    worker.on('error', () => this.forget(worker));
    worker.on('exit', () => this.forget(worker));
    return worker;
  }

  private settle({ id, drawn }: QrCodeResult): void {
    const asked = this.asked.get(id);
    if (!asked) return;
    this.asked.delete(id);
    clearTimeout(asked.timer);
    if (drawn) asked.resolve(drawn);
    else asked.reject(new Error('failed to draw the QR code of an activation code'));
  }

  private forget(worker: Worker | null): void {
    if (worker === null || this.worker !== worker) return;
    this.worker = null;
    const left = [...this.asked.values()];
    this.asked.clear();
    for (const { reject, timer } of left) {
      clearTimeout(timer);
      reject(new AppError('service_unavailable', { headers: { 'retry-after': '1' } }));
    }
  }
}
