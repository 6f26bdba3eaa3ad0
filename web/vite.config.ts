import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const server = process.env.CORRAL_URL ?? 'http://127.0.0.1:8470';

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: { outDir: '../corral/portal/static', emptyOutDir: true, sourcemap: false },
  server: { proxy: { '/api': { target: server, ws: true }, '/healthz': server, '/readyz': server } },
  test: { environment: 'node', css: true, globals: false },
});
