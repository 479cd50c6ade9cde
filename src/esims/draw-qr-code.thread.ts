import { parentPort } from 'node:worker_threads';
import bwipjs from 'bwip-js/node';

/** Request to the thread: the text of one QR code. */
export interface QrCodeRequest {
  readonly id: number;
  readonly text: string;
}

/** Null on failure. Without the reason, because an error message might repeat the text, which is a secret (D25). */
export interface QrCodeResult {
  readonly id: number;
  readonly drawn: QrCode | null;
}

export interface QrCode {
  readonly svg: string;
  readonly pngBase64: string;
}

/** Quiet zone of four modules, two points each, on every side (ISO/IEC 18004); scanners miss codes without it. */
const OPTIONS = { bcid: 'qrcode', scale: 6, padding: 8, backgroundcolor: 'FFFFFF', eclevel: 'M' } as const;

// Runs in its own thread, from a build or from source, so it may import packages but none of our modules.
parentPort?.on('message', ({ id, text }: QrCodeRequest) => {
  void drawQrCode(text).then((drawn) => parentPort?.postMessage({ id, drawn } satisfies QrCodeResult));
});

/** Null on failure. Blocks its thread for about 20 ms. */
export async function drawQrCode(text: string): Promise<QrCode | null> {
  try {
    // Separate option objects, because the library scales the padding in place.
    const png = await bwipjs.toBuffer({ ...OPTIONS, text });
    return { svg: bwipjs.toSVG({ ...OPTIONS, text }), pngBase64: png.toString('base64') };
  } catch {
    return null;
  }
}
