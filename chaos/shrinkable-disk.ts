import { execFileSync, spawnSync } from 'node:child_process';
import { statfsSync } from 'node:fs';

/** A tmpfs cannot be made smaller than what is written meanwhile: each try leaves so much more. */
const SPARE_BYTES = 16 * 1024;
const TRIES = 50;

/** A file system that is full from one moment to the next, and has room again: a tmpfs, which only root may mount. */
export class ShrinkableDisk {
  private constructor(private readonly folder: string) {}

  /** Null where this process may not mount. */
  static mountAt(folder: string): ShrinkableDisk | null {
    const options = ['-t', 'tmpfs', '-o', 'size=50%,mode=0755', 'tmpfs', folder];
    if (spawnSync('mount', options, { stdio: 'ignore' }).status !== 0) return null;
    const disk = new ShrinkableDisk(folder);
    process.once('exit', () => disk.unmount());
    return disk;
  }

  /** No file can grow by more than a few pages. @throws Error when it grows faster than it can be made smaller */
  fill(): void {
    for (let tries = 0; tries < TRIES; tries++) {
      const { blocks, bfree, bsize } = statfsSync(this.folder);
      const options = `remount,size=${(blocks - bfree) * bsize + tries * SPARE_BYTES}`;
      if (spawnSync('mount', ['-o', options, this.folder], { stdio: 'ignore' }).status === 0) return;
    }
    throw new Error(`${this.folder} cannot be made smaller`);
  }

  free(): void {
    execFileSync('mount', ['-o', 'remount,size=50%', this.folder]);
  }

  unmount(): void {
    spawnSync('umount', ['-l', this.folder], { stdio: 'ignore' });
  }
}
