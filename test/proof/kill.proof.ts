/**
 * `kill -9` swept over the life of a run: by points of the exchange, and by milliseconds. Several services, each with
 * a home of its own, so that the limit of one key does not decide how long it takes.
 */
import { expect, it } from 'vitest'
import { type Kill, sweep, tallyLine } from '../support/kill-sweep.js'

const several = (count: number, kill: (at: number) => Kill): readonly Kill[] =>
  Array.from({ length: count }, (_, at) => kill(at))

const SWEEPS: readonly (readonly [string, readonly Kill[]])[] = [
  ['from the start of the process, every 20 ms', several(30, (at) => 20 * (at + 1))],
  [
    'before and after the service has acted',
    [
      ...several(15, () => ({ at: 'create arrived' as const })),
      ...several(15, () => ({ at: 'create accepted' as const })),
    ],
  ],
  [
    'from the 201 on, every millisecond',
    several(30, (at) => ({ at: 'create answered' as const, afterMs: at })),
  ],
  ['while polling', several(20, (at) => ({ at: 'look' as const, number: 1, afterMs: at }))],
  ['during the download', several(25, (at) => ({ at: 'output' as const, share: at / 25 }))],
]

it.each(SWEEPS)('%s', async (name, kills) => {
  const tally = await sweep(kills)
  process.stdout.write(`${name}: ${tallyLine(tally)}\n`)
  expect(tally.wrong).toEqual([])
})
