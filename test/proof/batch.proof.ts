/** `kill -9` at 50 instants of a batch of four pictures, each followed by a second batch; two services at a time. */
import { expect, it } from 'vitest'
import { sweepBatches } from '../support/batch-sweep.js'

const KILLS = 50
const STEP_MS = 50

it(`loses nothing and pays nothing twice in ${KILLS} kills`, async () => {
  const instants = Array.from({ length: KILLS }, (_, at) => 100 + at * STEP_MS)
  const halves = await Promise.all(
    [0, 1].map((half) => sweepBatches(instants.filter((_, at) => at % 2 === half))),
  )
  const sum = (of: 'kills' | 'whole' | 'unconfirmed' | 'late') =>
    halves.reduce((total, each) => total + each[of], 0)
  const wrong = halves.flatMap((each) => each.wrong)
  process.stdout.write(
    `${sum('kills')} batches killed (${sum('late')} were done): ${sum('whole')} rows whole after the second one, ` +
      `${sum('unconfirmed')} named as unconfirmed, ${wrong.length} lost, paid twice or broken\n`,
  )
  expect(wrong).toEqual([])
  expect(sum('late')).toBeLessThan(KILLS / 2)
})
