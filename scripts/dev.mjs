// `npm run dev`: like `npm start`, but rebuilds on changes. The Nest CLI compiles (nest-cli.json). After each
// successful build, the service stops gracefully, as with Ctrl-C, and starts again with the same data.
// `nest start --watch` does not work here. It kills the process and all its children, including PostgreSQL under a
// service that is still draining.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';

const ENTRY = 'dist/src/main.js';
/** The last line that the compiler prints for each build. */
const BUILT = /Found (\d+) errors?\. Watching for file changes/;

/** Runs until interrupted. The exit code is 1 only if the compiler cannot run. */
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
      // Keep Ctrl-C away from the service, because a second signal would end it without draining.
      detached: true,
    });
    service.once('exit', () => {
      service = null;
      if (stopping) process.exit(0);
      if (restart) start();
      else console.error('dev: the service has exited; it restarts after the next change');
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
    console.error(`dev: the compiler exited with code ${code}`);
    process.exitCode = 1;
    stop();
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop);
  process.on('exit', () => compiler.kill());
}
