import { describe, expect, it } from 'vitest'
import { type Board, rowsText, sayElapsed, sayUsual, signOfLife } from '../../src/cli/render/progress.js'
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

  it.each([
    [12_000, undefined, '12 s'],
    [12_000, 100_000, '12 s of about 1 min 40 s'],
    [100_000, 100_000, '1 min 40 s'],
  ])('%i ms of %s is %s', (elapsedMs, expectedMs, said) => {
    expect(sayElapsed(elapsedMs, expectedMs)).toBe(said)
  })

  it('is part of the sign of life', () => {
    expect(signOfLife({ ...board, expectedMs: 120_000 }, 60_000)).toBe(
      'still waiting for 1 of 1 run (processing, 1 min 00 s of about 2 min 00 s)',
    )
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

describe('many runs on a terminal', () => {
  const live = new Map(Array.from({ length: 20 }, (_, at) => [`run_${at}`, 'processing'] as const))

  it.each([
    [24, 8, '  and 12 more\n'],
    [14, 5, '  and 15 more\n'],
    [4, 0, '  and 20 more\n'],
    [undefined, 8, '  and 12 more\n'],
  ])('have a line each, on a screen of %s rows %i of them', (rows, shown, more) => {
    const text = rowsText(live, 20, { columns: 80, rows })
    expect(text.endsWith(more)).toBe(true)
    expect(text.split('\n')).toHaveLength(shown + 2)
  })

  it('are cut to the width, and a single one has none', () => {
    const wide = new Map([['x'.repeat(200), 'a\u001b[31m']])
    expect(rowsText(wide, 2, { columns: 40, rows: 24 })).toMatch(/^ {2}x{35}…\n$/)
    expect(rowsText(live, 1, { columns: 80, rows: 24 })).toBe('')
  })
})
