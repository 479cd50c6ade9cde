// `npm run dev`: what `npm start` does, rebuilt on a change. The Nest CLI compiles (nest-cli.json); after every build
// without an error the service is stopped as Ctrl-C would, and started again on the same data. Not `nest start --watch`:
// that one kills the process with all its children, and so PostgreSQL under a service that is still draining.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';

const ENTRY = 'dist/src/main.js';
/** The compiler's last line of every build. */
const BUILT = /Found (\d+) errors?\. Watching for file changes/;

/** Runs until it is interrupted; the exit code is 1 only when the compiler cannot run. */
export function runDev(root) {
  const nest = path.join(root, 'node_modules/@nestjs/cli/bin/nest.js');
  const compiler = spawn(process.execPath, [nest, 'build', '--watch', '--preserveWatchOutput'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  let service = null;
  let stopping = false;
  let restart = false;

  const start = () => {
    restart = false;
    service = spawn(process.execPath, ['--enable-source-maps', path.join(root, ENTRY)], {
      cwd: root,
      stdio: 'inherit',
      // Ctrl-C reaches this process alone: a second signal would end the service without a drain.
      detached: true,
    });
    service.once('exit', () => {
      service = null;
      if (stopping) process.exit(0);
      if (restart) start();
      else console.error('dev: the service has ended; it starts again after the next change');
    });
  };
  const built = () => {
    if (stopping) return;
    if (service === null) return start();
    restart = true;
    service.kill('SIGTERM');
  };
  const stop = () => {
    stopping = true;
    compiler.kill();
    if (service === null) process.exit(0);
    service.kill('SIGTERM');
  };

  createInterface({ input: compiler.stdout }).on('line', (line) => {
    if (line.trim() !== '') console.error(`dev: ${line.trim()}`);
    if (BUILT.exec(line)?.[1] === '0') built();
  });
  compiler.once('exit', (code) => {
    if (stopping) return;
    console.error(`dev: the compiler has ended with ${code}`);
    process.exitCode = 1;
    stop();
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop);
  process.on('exit', () => compiler.kill());
}
