/** The program's first file, and for its version the only one: nothing is loaded before it is known to be needed. */
import { writeSync } from 'node:fs'
import { VERSION } from './version.js'

const edge = () => import('./edge.js')

export function start(): void {
  const [word, ...more] = process.argv.slice(2)
  if (more.length === 0 && (word === '--version' || word === '-V')) sayVersion()
  else {
    keepCompiled()
      .then(edge)
      .then(({ runProcess }) => runProcess())
  }
}

/**
 * From Node 22.8 on what was compiled once is read the next time; before, asking would load more than it is worth. Where its
 * folder cannot be made there is no cache.
 */
async function keepCompiled(): Promise<void> {
  if (Number.parseInt(process.versions.node, 10) < 22) return
  const { enableCompileCache } = process.getBuiltinModule('node:module') as {
    enableCompileCache?: (folder?: string) => unknown
  }
  const { compileCacheFolder } = await import('./compile-cache.js')
  const folder = compileCacheFolder(process.env)
  if (folder !== undefined) enableCompileCache?.(folder)
}

/** Not by the stream, which takes longer to be opened than Node takes to start. */
function sayVersion(): void {
  try {
    writeSync(1, `${VERSION}\n`)
  } catch (error) {
    edge().then(({ endWithout }) => endWithout(error as NodeJS.ErrnoException))
  }
}
