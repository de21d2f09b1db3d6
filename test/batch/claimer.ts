/** Claims a manifest, says whether it got it, and stays until it is killed: `node claimer <lock file> <folder>`. */
import { claimBatch } from '../../src/batch/lock/claim.js'
import { RushesError } from '../../src/errors.js'

const [lockPath = '', folder = ''] = process.argv.slice(2)
try {
  claimBatch({ lockPath, folder, now: new Date().toISOString() })
  process.stdout.write('claimed\n')
} catch (error) {
  if (!(error instanceof RushesError)) throw error
  process.stdout.write('held\n')
}
setInterval(() => {}, 1_000)
