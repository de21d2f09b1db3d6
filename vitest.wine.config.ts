/**
 * `npm run test:wine`: whole commands with the Node.js of Windows, under Wine. `test/wine/wine.ts` says what it needs.
 */
import { defineConfig } from 'vitest/config'
import { missingParts } from './test/wine/parts.js'
import { COMMON } from './vitest.config.js'

const missing = missingParts()
if (missing.length > 0)
  process.stdout.write(`Not set, so that the tests are skipped: ${missing.join(', ')}\n`)

export default defineConfig({
  test: {
    ...COMMON,
    include: ['test/wine/*.wine.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['./test/support/global-setup.ts'],
    fileParallelism: false,
  },
})
