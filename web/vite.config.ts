import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vitest/config';

const server = process.env.CORRAL_URL ?? 'http://127.0.0.1:8470';

/** Writes /sw.js with the files of this build, and a version that changes with them. */
const serviceWorker: Plugin = {
  name: 'service-worker',
  apply: 'build',
  enforce: 'post',
  generateBundle: {
    order: 'post',
    handler(_, bundle) {
      const files = ['recover.js', ...Object.keys(bundle).filter((name) => name.startsWith('assets/')).sort()];
      const template = readFileSync(new URL('./src/sw.js', import.meta.url), 'utf8');
      const recover = readFileSync(new URL('./public/recover.js', import.meta.url), 'utf8');
      const page = bundle['index.html'];
      const hash = createHash('sha256').update(template).update(recover).update(files.join()).update(page?.type === 'asset' ? page.source : '');
      const source = template
        .replace('__VERSION__', hash.digest('hex').slice(0, 12))
        .replace('__FILES__', JSON.stringify(files.map((name) => `/${name}`)));
      this.emitFile({ type: 'asset', fileName: 'sw.js', source });
    },
  },
};

/** Smaller files than this are sent as they are. */
const WORTH_COMPRESSING = 1024;

/** Writes each script and style a second time, compressed, so that the server need not do it for every browser. */
const compressed: Plugin = {
  name: 'compressed',
  apply: 'build',
  writeBundle: {
    order: 'post',
    handler({ dir }, bundle) {
      for (const name of Object.keys(bundle).filter((each) => /\.(js|css)$/.test(each) && each.startsWith('assets/'))) {
        const path = join(dir!, name);
        const bytes = readFileSync(path);
        if (bytes.length >= WORTH_COMPRESSING) writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
      }
    },
  },
};

export default defineConfig({
  plugins: [react(), tailwindcss(), serviceWorker, compressed],
  build: { outDir: '../corral/portal/static', emptyOutDir: true, sourcemap: false },
  server: { proxy: { '/api': { target: server, ws: true }, '/healthz': server, '/readyz': server } },
  test: { environment: 'node', css: true, globals: false, testTimeout: 60_000, setupFiles: './src/patience.ts' },
});
