import { parentPort } from 'node:worker_threads';
import bwipjs from 'bwip-js/node';

/** What the thread is asked for: the text of one QR code. */
export interface QrCodeRequest {
  readonly id: number;
  readonly text: string;
}

/** Null when it cannot be drawn. Not why: the words of an error might repeat the text, which is a secret (D25). */
export interface QrCodeResult {
  readonly id: number;
  readonly drawn: QrCode | null;
}

export interface QrCode {
  readonly svg: string;
  readonly pngBase64: string;
}

/** Quiet zone of four modules, each of two points, on every side (ISO/IEC 18004); scanners miss codes without it. */
const OPTIONS = { bcid: 'qrcode', scale: 6, padding: 8, backgroundcolor: 'FFFFFF', eclevel: 'M' } as const;

// Runs in a thread of its own, and from its source as well: it may import packages, and none of our modules.
parentPort?.on('message', ({ id, text }: QrCodeRequest) => {
  void drawQrCode(text).then((drawn) => parentPort?.postMessage({ id, drawn } satisfies QrCodeResult));
});

/** Null when it cannot be drawn. Keeps whoever calls it busy for some 20 ms. */
export async function drawQrCode(text: string): Promise<QrCode | null> {
  try {
    // An object each: the library scales the padding in it.
    const png = await bwipjs.toBuffer({ ...OPTIONS, text });
    return { svg: bwipjs.toSVG({ ...OPTIONS, text }), pngBase64: png.toString('base64') };
  } catch {
    return null;
  }
}
