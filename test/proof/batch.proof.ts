/** `kill -9` at 50 instants of a batch, each followed by a second batch; two services at a time. */
import { expect, it } from 'vitest'
import { type Family, FOUR_PICTURES, sweepBatches, THREE_LEVELS } from '../support/batch-sweep.js'

const KILLS = 50

it.each<[string, Family, number, 1 | 2]>([
  ['four pictures', FOUR_PICTURES, 50, 1],
  ['pictures that use each other in three levels', THREE_LEVELS, 160, 1],
  ['runs with two outputs', FOUR_PICTURES, 50, 2],
])(`loses nothing and pays nothing twice in ${KILLS} kills of %s`, async (name, family, stepMs, outputs) => {
  const instants = Array.from({ length: KILLS }, (_, at) => 100 + at * stepMs)
  const halves = await Promise.all(
    [0, 1].map((half) =>
      sweepBatches(
        instants.filter((_, at) => at % 2 === half),
        family,
        outputs,
      ),
    ),
  )
  const sum = (of: 'kills' | 'whole' | 'unconfirmed' | 'blocked' | 'late') =>
    halves.reduce((total, each) => total + each[of], 0)
  const wrong = halves.flatMap((each) => each.wrong)
  process.stdout.write(
    `${name}: ${sum('kills')} batches killed (${sum('late')} were done): ${sum('whole')} rows whole after the second one, ` +
      `${sum('unconfirmed')} named as unconfirmed, ${sum('blocked')} as blocked by one, ${wrong.length} lost, paid twice or broken\n`,
  )
  expect(wrong).toEqual([])
  expect(sum('late')).toBeLessThan(KILLS / 2)
})
