import bwipjs from 'bwip-js/node';

export interface QrCode {
  readonly svg: string;
  readonly pngBase64: string;
}

/** Quiet zone of four modules on each side (ISO/IEC 18004); scanners miss codes without it. */
const OPTIONS = { bcid: 'qrcode', scale: 6, padding: 24, backgroundcolor: 'FFFFFF', eclevel: 'M' } as const;

/** Renders the activation code as a QR code: what a phone's camera reads to install the profile. */
export async function renderQrCode(activationCode: string): Promise<QrCode> {
  const options = { ...OPTIONS, text: activationCode };
  const png = await bwipjs.toBuffer(options);
  return { svg: bwipjs.toSVG(options), pngBase64: png.toString('base64') };
}
