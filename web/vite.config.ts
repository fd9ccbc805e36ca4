import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  build: {
    outDir: "../src/holdfast/console/static",
    emptyOutDir: true,
    target: "es2023",
    // The policy of the pages allows no inline script, no data: URL and no eval.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1200,
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
