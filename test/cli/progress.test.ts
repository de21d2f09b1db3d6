import { describe, expect, it } from 'vitest'
import {
  type Board,
  formatElapsed,
  formatTypicalDuration,
  stillWaitingLine,
} from '../../src/cli/terminal/progress-lines.js'
import { addedRows, rowsText, spinnerText } from '../../src/cli/terminal/spinner.js'
import { signsFor, supportsUtf8 } from '../../src/cli/terminal/style.js'
import { alignedRow, widthsOf } from '../../src/cli/terminal/table.js'
import { columnsOf } from '../../src/cli/terminal/text-width.js'
import { createCliService } from '../support/cli.js'

const board: Board = {
  statuses: new Map([['run_1', 'processing']]),
  runs: 1,
  ended: 0,
  created: 1,
  activity: undefined,
  amount: undefined,
  typical: undefined,
}

describe('what is usual', () => {
  it.each([
    [41_000, 41_400, 'usually 41–42 s'],
    [40_100, 41_000, 'usually 41 s'],
    [300, 700, 'usually 1 s'],
    [35_000, 70_000, 'usually 35 s to 1 min 10 s'],
  ])('%i to %i ms: %s', (fromMs, toMs, said) => {
    expect(formatTypicalDuration({ fromMs, toMs })).toBe(said)
  })

  it.each([
    [12_000, undefined, '12 s'],
    [12_000, 100_000, '12 s of about 1 min 40 s'],
    [100_000, 100_000, '1 min 40 s'],
    [0, 400, '0 s of about 1 s'],
    [5_400, 5_900, '5 s of about 6 s'],
  ])('%i ms of %s is %s', (elapsedMs, expectedMs, said) => {
    expect(formatElapsed(elapsedMs, expectedMs)).toBe(said)
  })

  it('is part of the sign of life', () => {
    expect(stillWaitingLine({ ...board, expectedMs: 120_000 }, 60_000)).toBe(
      'still waiting for 1 of 1 run (processing, 1 min 00 s of about 2 min 00 s)',
    )
    expect(stillWaitingLine(board, 60_000)).toBe('still waiting for 1 of 1 run (processing, 1 min 00 s)')
    expect(stillWaitingLine({ ...board, typical: { fromMs: 90_000, toMs: 95_000 } }, 60_000)).toBe(
      'still waiting for 1 of 1 run (processing, 1 min 00 s, usually 1 min 30 s to 1 min 35 s)',
    )
  })

  it("comes from the user's own runs of that model", async () => {
    const service = await createCliService()
    for (const prompt of ['a', 'b', 'c']) await service.run(['run', 'image', prompt])
    const slow = await createCliService({ rendering: false, clock: service.clock })
    const onSlow = { fetch: slow.fetch, env: { RUSHES_API_KEY: slow.apiKey } }
    const { stderr } = await service.run(['run', 'image', 'd', '--timeout', '90s'], onSlow)
    expect(stderr).toMatch(/still waiting for 1 of 1 run \(queued, 1 min 0\d s, usually \d s/)
    expect((await service.run(['run', 'video', 'e', '--timeout', '90s'], onSlow)).stderr).not.toMatch(
      /usually/,
    )
  })
})

describe('a window that becomes narrower', () => {
  it.each([
    ['  a\n  b\n - c', 80, 0],
    ['', 80, 0],
    [`  ${'a'.repeat(28)}\n - b`, 30, 0],
    [`  ${'a'.repeat(29)}\n - b`, 30, 1],
    [`  ${'狐'.repeat(29)}\n${'b'.repeat(90)}`, 30, 1 + 2],
    ['abc', 0, 0],
  ])('%j in %i columns has %i rows more', (text, columns, rows) => {
    expect(addedRows(text, columns)).toBe(rows)
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
    expect(rowsText(wide, 2, { columns: 40, rows: 24 })).toMatch(/^ {2}x{28}… {2}a\[31m\n$/)
    for (const columns of [5, 8, 12, 40])
      for (const row of rowsText(wide, 2, { columns, rows: 24 }).trimEnd().split('\n'))
        expect(columnsOf(row)).toBeLessThan(columns)
    expect(rowsText(live, 1, { columns: 80, rows: 24 })).toBe('')
  })
})

describe('the line beside the spinner', () => {
  const one: Board = {
    ...board,
    statuses: new Map([['run_9f16k352rrqtqcnggw31', 'processing']]),
    typical: { fromMs: 35_000, toMs: 50_000 },
  }
  const going = { ...one, amount: { receivedBytes: 3 << 20, totalBytes: 12 << 20 } }
  const many: Board = {
    ...board,
    runs: 4,
    ended: 2,
    statuses: new Map([
      ['a', 'succeeded'],
      ['b', 'succeeded'],
      ['c', 'queued'],
    ]),
    amount: { receivedBytes: 5_000, totalBytes: undefined },
  }
  const wide = { ...board, statuses: new Map([['狐'.repeat(30), '狸']]) }

  it.each<[string, Board, number, string]>([
    ['whole', one, 80, 'run_9f16k352rrqtqcnggw31 processing 41 s (usually 35–50 s)'],
    ['without what is usual', one, 60, 'run_9f16k352rrqtqcnggw31 processing 41 s'],
    ['without the id', one, 40, 'processing 41 s'],
    ['cut', one, 14, 'proc… 41 s'],
    ['the time alone', one, 8, ' 41 s'],
    [
      'a bar',
      { ...going, typical: undefined },
      120,
      'run_9f16k352rrqtqcnggw31 processing · downloading [#####---------------] 25 % of 12.0 MiB 41 s',
    ],
    ['no bar', going, 80, 'run_9f16k352rrqtqcnggw31 processing · downloading 25 % 41 s'],
    ['no bar and no id', going, 40, 'processing · downloading 25 % 41 s'],
    ['several', many, 80, '2 of 4 done · 2 succeeded, 1 queued · downloading 4.9 KiB 41 s'],
    ['several, without counts', many, 50, '2 of 4 done · downloading 4.9 KiB 41 s'],
    ['several, the number alone', many, 24, '2 of 4 done 41 s'],
    ['nothing yet', { ...board, statuses: new Map() }, 80, 'starting 41 s'],
  ])('%s', (_, given, columns, said) => {
    const { text, times } = spinnerText(given, 41_000, columns)
    expect(`${text} ${times}`).toBe(said)
  })

  it('fits whatever the width, in columns and not in characters', () => {
    for (const given of [one, going, many, wide])
      for (let columns = 5; columns < 130; columns++) {
        const { text, times } = spinnerText(given, 3_000_000, columns)
        expect(columnsOf(`${text} ${times}`.trim())).toBeLessThanOrEqual(columns - 4)
      }
    expect(columnsOf(rowsText(wide.statuses, 2, { columns: 40, rows: 24 }).trimEnd())).toBeLessThan(40)
  })
})

describe('a table', () => {
  const rows = [
    ['a', 'bb', 'c'],
    ['aaa', 'b', 'cccc'],
  ]
  it.each<[number | undefined, readonly string[]]>([
    [undefined, ['a    bb  c', 'aaa  b   cccc']],
    [13, ['a    bb  c', 'aaa  b   cccc']],
    [12, ['a  bb  c', 'aaa  b  cccc']],
  ])('of %s columns', (columns, lines) => {
    const widths = widthsOf(rows, columns)
    expect(rows.map((row) => alignedRow(row, widths))).toEqual(lines)
  })
})

describe('a locale', () => {
  it.each([
    [{}, true],
    [{ LANG: '' }, true],
    [{ LANG: 'en_US.UTF-8' }, true],
    [{ LANG: 'C.utf8' }, true],
    [{ LC_CTYPE: 'UTF-8' }, true],
    [{ LANG: 'C' }, false],
    [{ LC_ALL: 'POSIX', LANG: 'en_US.UTF-8' }, false],
    [{ LC_ALL: 'C.UTF-8', LANG: 'C' }, true],
    [{ LC_CTYPE: 'de_DE.ISO-8859-1', LANG: 'de_DE.UTF-8' }, false],
  ])('%j: UTF-8 %s', (env, is) => {
    expect(supportsUtf8(env)).toBe(is)
    expect(signsFor(env)('1 · 2…')).toBe(is ? '1 · 2…' : '1 - 2~')
  })
})
