import type { Streams } from './output.js';

/**
 * Calls `tell` when the reader of stdout has exited, as after `| head -1`. Without a reader of stderr, the command
 * continues, because a purchase must not stop for its messages. The handlers stay installed, because a pipe may report
 * the error only after the command's last line.
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
