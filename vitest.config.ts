import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['./test/support/global-setup.ts'],
    testTimeout: 30_000,
    // Most of them wait for processes: on two cores one worker alone would leave half of the machine idle.
    maxWorkers: 3,
  },
})
