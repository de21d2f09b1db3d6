/** The program's first file, and for its version the only one: nothing is loaded before it is known to be needed. */
import { writeSync } from 'node:fs'
import { VERSION } from './version.js'

/** By which everything else is loaded. */
export { part } from './packs.js'

const edge = () => import('./edge.js')

export function start(): void {
  const [word, ...more] = process.argv.slice(2)
  if (more.length === 0 && (word === '--version' || word === '-V')) sayVersion()
  else edge().then(({ runProcess }) => runProcess())
}

/** Not by the stream, which takes longer to be opened than Node takes to start. */
function sayVersion(): void {
  try {
    writeSync(1, `${VERSION}\n`)
  } catch (thrown) {
    const error = thrown as NodeJS.ErrnoException
    if (error.code === 'EAGAIN') process.stdout.write(`${VERSION}\n`)
    else edge().then(({ endWithout }) => endWithout(error))
  }
}
