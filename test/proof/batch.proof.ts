/** `kill -9` at 50 instants of a batch, each followed by a second batch; two services at a time. */
import { expect, it } from 'vitest'
import { type SweepOptions, sweepBatches, THREE_LEVELS } from '../support/batch-sweep.js'

const KILLS = 50

it.each<[string, number, SweepOptions]>([
  ['four pictures', 50, {}],
  ['four pictures of one input', 50, { isOneInput: true }],
  ['pictures that use each other in three levels', 160, { family: THREE_LEVELS }],
  ['runs with two outputs', 50, { outputs: 2 }],
])(`loses nothing and pays nothing twice in ${KILLS} kills of %s`, async (name, stepMs, options) => {
  const instants = Array.from({ length: KILLS }, (_, at) => 100 + at * stepMs)
  const halves = await Promise.all(
    [0, 1].map((half) =>
      sweepBatches(
        instants.filter((_, at) => at % 2 === half),
        options,
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
