/** What a batch still creates when the time limit of its runs has passed. */
import { expect, it } from 'vitest'
import { createFamily } from '../support/family.js'

const ROWS = ['a', 'b', 'c'].map((name) => ({ name, prompt: name }))

it.each([
  [['--concurrency', '1'], ['a']],
  [
    ['--concurrency', '2'],
    ['a', 'b'],
  ],
])(
  'a run whose time limit has passed still counts for %j: no further run is created',
  async (flags, created) => {
    const batch = await createFamily(ROWS, { rendering: false })
    const { code, stderr } = await batch.run([...flags, '--timeout', '2s'])
    expect([code, batch.created()]).toEqual([11, created])
    expect(stderr).toContain(`${ROWS.length - created.length} not started`)
    // The next batch follows the same runs and creates no other.
    expect([(await batch.run([...flags, '--timeout', '2s'])).code, batch.created()]).toEqual([11, []])
    batch.service.service.startRendering()
    expect((await batch.run(flags)).code).toBe(0)
    expect([...created, ...batch.created()].sort()).toEqual(['a', 'b', 'c'])
  },
)
