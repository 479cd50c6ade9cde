import path from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Where the portal's own listener is while `vite` serves the sources. */
const PORTAL_API = 'http://127.0.0.1:3004';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react()],
  build: {
    outDir: path.resolve(import.meta.dirname, '../dist/portal'),
    emptyOutDir: true,
    target: 'es2023',
    // Strict CSP: nothing inline, and no polyfill that would be.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  server: { port: 5173, proxy: { '/portal/v1': PORTAL_API } },
});
