/**
 * Claims a manifest, says `claimed` or `held`, and stays until it is killed; `lost` when its claim is lost:
 * `node claimer <lock file> <state folder>`.
 */
import { claimBatch } from '../../src/batch/lock/claim.js'
import { RushesError } from '../../src/errors.js'
import { systemClock } from '../../src/host/clock.js'

const [lockPath = '', stateFolder = ''] = process.argv.slice(2)
const say = (word: string) => process.stdout.write(`${word}\n`)
try {
  const claim = await claimBatch({
    lockPath,
    stateFolder,
    clock: systemClock,
    signal: new AbortController().signal,
    onObserve: () => say('observing'),
  })
  claim.lost.addEventListener('abort', () => say('lost'))
  say('claimed')
} catch (error) {
  if (!(error instanceof RushesError)) throw error
  say('held')
}
setInterval(() => {}, 1_000)
