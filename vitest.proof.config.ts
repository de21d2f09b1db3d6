import { defineConfig } from 'vitest/config'

/** What needs real time: kill sweeps, windows of ten seconds, load. Its figures go into bench/results.md. */
export default defineConfig({
  test: {
    include: ['test/proof/**/*.proof.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['./test/support/global-setup.ts'],
    testTimeout: 600_000,
    hookTimeout: 180_000,
    fileParallelism: false,
  },
})
