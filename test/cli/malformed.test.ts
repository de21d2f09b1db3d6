/** Whatever a service answers, a command ends as documented. `test/proof/malformed.proof.ts` does the same at length. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { malformedProperty, type Tally } from '../support/malformed.js'

it('answers that no service should give, at random', async () => {
  const tally: Tally = new Map()
  await fc.assert(malformedProperty(tally), { numRuns: 120, seed: 20_260_101 })
  expect(tally.size).toBeGreaterThan(8)
})
