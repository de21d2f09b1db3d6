/** The program's first file, and for its version the only one: nothing is loaded before it is known to be needed. */
import module from 'node:module'
import { compileCacheFolder } from './compile-cache.js'
import { VERSION } from './version.js'

const edge = () => import('./edge.js')

export function start(): void {
  const [word, ...more] = process.argv.slice(2)
  if (more.length === 0 && (word === '--version' || word === '-V')) sayVersion()
  else {
    // From Node 22.8 on: what was compiled once is read the next time. Where that folder cannot be made there is no cache.
    const { enableCompileCache } = module as { enableCompileCache?: (folder?: string) => unknown }
    const folder = compileCacheFolder(process.env)
    if (folder !== undefined) enableCompileCache?.(folder)
    edge().then(({ runProcess }) => runProcess())
  }
}

function sayVersion(): void {
  process.stdout.on('error', (error) => edge().then(({ endWithout }) => endWithout(error)))
  process.stdout.write(`${VERSION}\n`)
}
