import { defineConfig } from 'vitest/config'
import { PATIENCE_MS } from './test/support/patience.js'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['./test/support/global-setup.ts'],
    // Otherwise `import style from './page.css?raw'` is an empty text.
    css: true,
    // Guards against hanging alone: a slow machine must not reach it.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: PATIENCE_MS } },
    // Most of them wait for processes: on two cores one worker alone would leave half of the machine idle.
    maxWorkers: 3,
  },
})
