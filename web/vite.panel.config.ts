/** Builds a panel, named by the mode, as one file that loads nothing: the host gives it no network. */
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const at = (path: string) => new URL(path, import.meta.url).pathname;

export default defineConfig(({ mode }) => ({
  root: at("./src/panel"),
  publicDir: false,
  logLevel: "warn",
  plugins: [react(), viteSingleFile({ removeViteModuleLoader: true })],
  resolve: { alias: { "@": at("./src") } },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  build: {
    outDir: at("../src/holdfast/console/static/panels"),
    emptyOutDir: false,
    target: "es2023",
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { input: at(`./src/panel/${mode}.html`) },
  },
}));
