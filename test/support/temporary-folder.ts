import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeFolder } from '../../src/host/own-folder.js'
import { whenOver } from './after-file.js'

/** Creates a folder that is removed when the test ends. In `beforeAll`, when the file ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-test-'))
  // Uses `removeFolder`, because an engine may have left links in the folder.
  whenOver(() => removeFolder(folder))
  return folder
}
