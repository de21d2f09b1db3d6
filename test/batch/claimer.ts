/** Claims a manifest, says `claimed` or `held`, and stays until it is killed: `node claimer <lock file>`. */
import { claimBatch } from '../../src/batch/lock/claim.js'
import { RushesError } from '../../src/errors.js'

const [lockPath = ''] = process.argv.slice(2)
try {
  claimBatch(lockPath)
  process.stdout.write('claimed\n')
} catch (error) {
  if (!(error instanceof RushesError)) throw error
  process.stdout.write('held\n')
}
setInterval(() => {}, 1_000)
