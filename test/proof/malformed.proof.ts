/** A thousand malformed answers to whole command lines, with new ones each time; the seed is printed on failure. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { malformedProperty, sayTally, type Tally } from '../support/malformed.js'

const CASES = 1_000

it('ends as documented whatever the service answers', async () => {
  const tally: Tally = new Map()
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  await fc.assert(malformedProperty(tally), { numRuns: CASES, seed })
  process.stdout.write(`${CASES} malformed answers: exit ${sayTally(tally)}, 0 stack traces (seed ${seed})\n`)
  expect([...tally.values()].reduce((sum, each) => sum + each, 0)).toBe(CASES)
})
