import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { whenOver } from './after-file.js'

/** Creates a folder that is removed when the test ends. In `beforeAll`, when the file ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-test-'))
  // Retries, because another process may still be changing it.
  whenOver(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}
