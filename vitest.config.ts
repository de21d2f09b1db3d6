/** `npm test`: what needs Node and nothing else. What needs servers or a browser is in `vitest.system.config.ts`. */
import { defineConfig } from 'vitest/config'
import { PATIENCE_MS } from './test/support/patience.js'

/** What all suites share. */
export const COMMON = {
  setupFiles: ['./test/support/setup.ts'],
  // Otherwise `import style from './page.css?raw'` is an empty text.
  css: true,
  // Variables that a test sets are set back after it.
  unstubEnvs: true,
  // Only prevents endless waiting: even a slow machine must not reach it.
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: PATIENCE_MS } },
}

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['./test/support/global-setup.ts', './test/support/memory-folder.ts'],
    // Most of them wait for processes: on two cores one worker alone would leave half of the machine idle.
    maxWorkers: 3,
    projects: [
      {
        test: {
          ...COMMON,
          setupFiles: [...COMMON.setupFiles, './test/support/working-folder.ts'],
          // Longer than the patience of a test for an event: then the test says what it has waited for.
          testTimeout: 2 * PATIENCE_MS,
          hookTimeout: 2 * PATIENCE_MS,
          name: 'test',
          include: ['test/**/*.test.ts'],
          // A worker loads each module once for all of its files.
          isolate: false,
        },
      },
    ],
  },
})
