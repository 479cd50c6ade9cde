import type { Streams } from './output.js';

/**
 * Tells when the reader of stdout is gone, as behind `| head -1`: then nobody wants what is still to come. A reader of
 * stderr that is gone ends nothing: a purchase goes on without its words. Never let go of, for a pipe may say so only
 * after the command's last line.
 */
export function whenReaderIsGone({ stdout, stderr }: Streams, tell: () => void): void {
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    tell();
  });
  stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}
