import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { notificationFor } from '../../src/cli/terminal/notify.js'
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
import { createFamily, objects, SHEET } from '../support/family.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { until } from '../support/until.js'

const board: Board = {
  statuses: new Map([['run_1', 'processing']]),
  detail: '',
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

  it('appears in the sign of life', () => {
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

describe('what the service says of a render', () => {
  it('appears in the spinner and in the sign of life of the only run', () => {
    const far = { ...board, detail: '12,653 before it' }
    expect(spinnerText(far, 5_000).text).toBe('processing, 12,653 before it · run_1')
    expect(stillWaitingLine(far, 60_000)).toBe(
      'still waiting for 1 of 1 run (processing, 12,653 before it, 1 min 00 s)',
    )
  })

  it('reaches a command that waits, and writes no line of its own', async () => {
    const service = await createCliService({
      rendering: true,
      engine: {
        render(job) {
          job.onPosition?.(3)
          return new Promise((_, reject) =>
            job.signal.addEventListener('abort', () => reject(job.signal.reason)),
          )
        },
      },
    })
    const { stderr } = await service.run(['run', 'image', 'a fox', '--timeout', '90s'])
    expect(stderr).toMatch(/still waiting for 1 of 1 run \(processing, 3 before it, 1 min 0\d s\)/)
    expect(stderr.match(/before it/g)).toHaveLength(1)
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

  it('fit the width, and a single run has none', () => {
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
    ['whole', one, 80, 'processing · run_9f16k352rrqtqcnggw31 41 s (usually 35–50 s)'],
    ['without what is usual', one, 60, 'processing · run_9f16k352rrqtqcnggw31 41 s'],
    ['cut', one, 30, 'processing · run_9f1… 41 s'],
    ['the time alone', one, 8, ' 41 s'],
    [
      'of a download',
      { ...going, typical: undefined },
      120,
      'processing · downloading 25 % of 12.0 MiB · run_9f16k352rrqtqcnggw31 41 s',
    ],
    ['several', many, 80, '2 of 4 done · downloading 4.9 KiB · 2 succeeded, 1 queued 41 s'],
    ['several, cut', many, 24, '2 of 4 done · … 41 s'],
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

describe('--progress json', () => {
  const progressIn = (text: string) => objects(text).map(({ progress }) => progress)

  it('prints a line for each status of each run, and at most one per second for other changes', async () => {
    const { run } = await createCliService()
    const folder = temporaryFolder()
    const words = ['run', 'image', 'a fox', '-n', '3', '-o', `${folder}/{index}.png`]
    const { code, stderr } = await run([...words, '--quiet', '--progress', 'json'])
    expect(code).toBe(0)
    const lines = progressIn(stderr)
    const statuses = lines.filter((each) => each.run !== null).map((each) => `${each.run} ${each.status}`)
    expect(new Set(statuses).size).toBe(statuses.length)
    expect(statuses.filter((each) => each.endsWith(' succeeded'))).toHaveLength(3)
    const others = lines.slice(0, -1).filter((each) => each.run === null)
    for (const [at, { elapsed_ms }] of others.entries())
      if (at > 0) expect(elapsed_ms - others[at - 1].elapsed_ms).toBeGreaterThanOrEqual(1_000)
    const last = lines.at(-1)
    expect(last).toMatchObject({ run: null, total: 3, done: 3 })
    expect(last.received_bytes).toBe(last.total_bytes)
    expect(last.received_bytes).toBeGreaterThan(0)
  })

  it('writes JSON to every stream, also to a terminal', async () => {
    const { run } = await createCliService()
    const words = ['run', 'image', 'a fox', '--quiet', '--progress', 'json']
    const { stderr } = await run(words, { tty: { stderr: true } })
    expect(progressIn(stderr).at(-1)).toMatchObject({ done: 1 })
  })

  it('names the rows of a batch', async () => {
    const { run } = await createFamily([SHEET])
    const { stderr } = await run(['--quiet', '--progress', 'json'])
    const lines = progressIn(stderr)
    expect(lines).toContainEqual(
      expect.objectContaining({ name: 'sheet', run: expect.stringMatching(/^run_/), status: 'succeeded' }),
    )
    expect(lines.at(-1)).toMatchObject({ done: 1, total: 1 })
  })

  it('ends with exit 2 for another form', async () => {
    const { run } = await createCliService()
    const { code, stderr } = await run(['wait', '--last', '--progress', 'xml'])
    expect([code, stderr.split('\n')[0]]).toEqual([2, 'error: Unknown progress "xml". Use json.'])
  })
})

describe('--notify', () => {
  const CODE = '\u001b]9;rushes: 1 run: 1 queued\u001b\\\u0007'
  const BELL = '\u0007'

  it.each<[string, object, boolean, string, string | undefined]>([
    ['after more than 10 s', { TERM_PROGRAM: 'WezTerm' }, true, '15s', CODE],
    ['not after a shorter wait', { TERM_PROGRAM: 'WezTerm' }, true, '8s', undefined],
    ['not without a terminal', { TERM_PROGRAM: 'WezTerm' }, false, '15s', undefined],
  ])('notifies %s', async (_, env, stderr, timeout, code) => {
    const { run } = await createCliService({ rendering: false })
    const ran = await run(['run', 'image', 'a fox', '--notify', '--timeout', timeout], {
      env: { TERM: 'dumb', ...env },
      tty: { stderr },
    })
    expect(ran.code).toBe(11)
    if (code === undefined) expect(ran.stderr).not.toContain(BELL)
    else expect(ran.stderr).toContain(code)
  })

  it('starts notify-send without the API key, and does not need it', async () => {
    const { run } = await createCliService({ rendering: false })
    const folder = temporaryFolder()
    const [program, written] = [join(folder, 'notify-send'), join(folder, 'written')]
    const words = ['run', 'image', 'a fox', '--notify', '--timeout', '15s']
    const options = {
      env: { TERM: 'dumb', DISPLAY: ':0', PATH: `${folder}:/usr/bin:/bin`, HOME: folder },
      tty: { stderr: true },
    }
    const missing = await run(words, options)
    expect([missing.code, missing.stderr.includes(BELL)]).toEqual([11, true])
    writeFileSync(
      program,
      `#!/bin/sh\nprintf '%s\\n' "$@" > "$HOME/w"; env >> "$HOME/w"; mv "$HOME/w" "$HOME/written"\n`,
    )
    chmodSync(program, 0o700)
    expect((await run(words, options)).code).toBe(11)
    await until('notify-send is started', () => existsSync(written) || undefined)
    const text = readFileSync(written, 'utf8')
    expect(text).toMatch(/^--app-name=rushes\n--\nrushes\n1 run: 1 queued\n/)
    expect(text).not.toContain('RUSHES_API_KEY')
  })

  const WORDS = '3 runs: 2 succeeded, 1 failed'
  const OSC_9 = `\u001b]9;rushes: ${WORDS}\u001b\\${BELL}`
  const OSC_777 = `\u001b]777;notify;rushes;${WORDS}\u001b\\${BELL}`
  it.each<[string, Record<string, string>, string, string, string | undefined]>([
    ['iTerm2', { TERM_PROGRAM: 'iTerm.app' }, 'darwin', OSC_9, undefined],
    ['iTerm2 over ssh', { LC_TERMINAL: 'iTerm2', SSH_TTY: '/dev/pts/1' }, 'linux', OSC_9, undefined],
    ['kitty', { TERM: 'xterm-kitty', DISPLAY: ':0' }, 'linux', OSC_9, undefined],
    ['rxvt', { TERM: 'rxvt-unicode', DISPLAY: ':0' }, 'linux', OSC_777, undefined],
    ['kitty in tmux', { TERM: 'tmux-256color', KITTY_WINDOW_ID: '1' }, 'linux', BELL, undefined],
    ['another terminal of a Mac', { TERM: 'xterm' }, 'darwin', BELL, 'osascript'],
    ['another terminal of a desktop', { WAYLAND_DISPLAY: 'wayland-0' }, 'linux', BELL, 'notify-send'],
    ['a desktop over ssh', { DISPLAY: ':10', SSH_CONNECTION: 'a' }, 'linux', BELL, undefined],
    ['a console', { TERM: 'linux' }, 'linux', BELL, undefined],
    ['Windows', { WT_SESSION: 'a' }, 'win32', BELL, undefined],
  ])('of %s uses what the environment names', (_, env, platform, codes, program) => {
    const notification = notificationFor(env, platform, WORDS)
    expect([notification.codes, notification.program?.[0]]).toEqual([codes, program])
  })

  it('prints no control characters of a status', () => {
    expect(notificationFor({ TERM: 'foot' }, 'linux', 'a\u001b\\\u0007b').codes).toBe(
      `\u001b]777;notify;rushes;a\\b\u001b\\${BELL}`,
    )
  })
})
