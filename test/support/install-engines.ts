/**
 * Installs the servers of `test/engines/` when they are missing or have another version. They are a separate package,
 * so that users of `rushes` do not download them.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('../engines', import.meta.url))

/** Installs the servers. If that fails, tests that need them are skipped. */
export function installEngines(): void {
  const wanted = createHash('sha256')
    .update(readFileSync(`${FOLDER}/package-lock.json`))
    .digest('hex')
  const marker = `${FOLDER}/node_modules/.installed`
  if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return
  try {
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-progress', '--loglevel=error'], {
      cwd: FOLDER,
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 240_000,
    })
    writeFileSync(marker, wanted)
  } catch {
    console.warn('The servers of test/engines could not be installed: their tests are skipped.')
  }
}
