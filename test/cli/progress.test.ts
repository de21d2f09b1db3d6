import { describe, expect, it } from 'vitest'
import { type Board, sayUsual, signOfLife } from '../../src/cli/render/progress.js'
import { createCliService } from '../support/cli.js'

const board: Board = {
  statuses: new Map([['run_1', 'processing']]),
  runs: 1,
  ended: 0,
  created: 1,
  activity: undefined,
  usual: undefined,
}

describe('what is usual', () => {
  it.each([
    [41_000, 41_400, 'usually 41 s to 42 s'],
    [40_100, 41_000, 'usually 41 s'],
    [300, 700, 'usually 1 s'],
    [35_000, 70_000, 'usually 35 s to 1 min 10 s'],
  ])('%i to %i ms: %s', (fromMs, toMs, said) => {
    expect(sayUsual({ fromMs, toMs })).toBe(said)
  })

  it('is part of the sign of life', () => {
    expect(signOfLife(board, 60_000)).toBe('still waiting for 1 of 1 run (processing, 1 min 00 s)')
    expect(signOfLife({ ...board, usual: { fromMs: 90_000, toMs: 95_000 } }, 60_000)).toBe(
      'still waiting for 1 of 1 run (processing, 1 min 00 s, usually 1 min 30 s to 1 min 35 s)',
    )
  })

  it("comes from the user's own runs of that model", async () => {
    const service = await createCliService()
    for (const prompt of ['a', 'b', 'c']) await service.run(['run', 'image', prompt])
    const slow = await createCliService({
      rendering: false,
      clock: service.clock,
      dataFolder: service.dataFolder,
    })
    const { stderr } = await service.run(['run', 'image', 'd', '--timeout', '90s'], { fetch: slow.fetch })
    expect(stderr).toMatch(/still waiting for 1 of 1 run \(queued, 1 min 0\d s, usually \d s/)
    expect(
      (await service.run(['run', 'video', 'e', '--timeout', '90s'], { fetch: slow.fetch })).stderr,
    ).not.toMatch(/usually/)
  })
})
