import { defineConfig } from 'vitest/config'
import { installEngines } from './test/support/install-engines.js'
import { COMMON } from './vitest.config.js'

installEngines()

/** What needs real time, and the real disk: kill sweeps, windows of ten seconds, load. Its figures go into bench/results.md. */
export default defineConfig({
  test: {
    ...COMMON,
    include: ['test/proof/**/*.proof.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['./test/support/global-setup.ts'],
    fileParallelism: false,
  },
})
