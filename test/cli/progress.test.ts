import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Context } from '../../src/cli/context/context.js'
import { RunsView, stillWaitingLine } from '../../src/cli/runs/runs-view.js'
import { createStyle } from '../../src/cli/terminal/output.js'
import { type Board, spinnerText } from '../../src/cli/terminal/spinner.js'
import { columnsOf } from '../../src/cli/terminal/text-width.js'
import type { RunState } from '../../src/protocol/run-state.js'
import type { Result, Run } from '../../src/runs/run.js'
import { createCliService, createManualClock, type Environment, temporaryFolder } from '../support/index.js'

const board: Board = {
  statuses: new Map([['run_1', 'processing']]),
  detail: '',
  runs: 1,
  ended: 0,
  activity: undefined,
}

it('the place of a run in the queue is in the spinner, and in the line of each minute', () => {
  const far = { ...board, detail: '12,653 before it' }
  expect(spinnerText(far, 5_000).text).toBe('processing, 12,653 before it · run_1')
  expect(stillWaitingLine(far, 60_000)).toBe(
    'still waiting for 1 of 1 run (processing, 12,653 before it, 1 min 00 s)',
  )
})

it('run says each minute that it downloads while the outputs of its run do not arrive', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  const { stderr } = await service.run(`run image "a fox" -o ${path}`, { faults: ['output:stall:1'] })
  expect(stderr).toMatch(/still waiting for 1 of 1 run \(succeeded, downloading.*, 1 min/)
})

it('run prints the place of its run in the queue in the line of each minute alone', async () => {
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
  const { stderr } = await service.run('run image "a fox" --timeout 90s')
  expect(stderr).toMatch(/still waiting for 1 of 1 run \(processing, 3 before it, 1 min 0\d s\)/)
  expect(stderr.match(/before it/g)).toHaveLength(1)
})

const waitWith = async (fault: string, flag = '') => {
  const service = await createCliService()
  await service.run('run image "a fox" --no-wait')
  return (await service.run(`wait --last ${flag}`, { faults: [fault] })).stderr
}

it('wait names a service that does not answer after two failed requests in a row, and says when it answers again', async () => {
  expect(await waitWith('status:500:3')).toMatch(
    /^The service .*500.*\. Still trying\.\nThe service answers again\.\nrun_\w+: succeeded \(7 s\)\n$/,
  )
})

it('a 404 that does not say that the run is unknown leaves it with the command that waits for it again', async () => {
  expect(await waitWith('status:404')).toMatch(/Resume with `rushes wait run_\w+`\.$/m)
  expect(await waitWith('status:404:run_not_found')).not.toMatch(/Resume with/)
})

it.each([
  ['status:500:1', ''],
  ['status:500:3', '--quiet'],
  ['status:500:3', '--json'],
])('wait does not name a service that does not answer after %s with %j', async (fault, flag) => {
  expect(await waitWith(fault, flag)).not.toMatch(/Still trying|answers again/)
})

const one: Board = {
  ...board,
  statuses: new Map([['run_9f16k352rrqtqcnggw31', 'processing']]),
}
const going = { ...one, activity: 'downloading 3.0 MiB of 12.0 MiB' }
const many: Board = {
  ...board,
  runs: 4,
  ended: 2,
  statuses: new Map([
    ['a', 'succeeded'],
    ['b', 'succeeded'],
    ['c', 'queued'],
  ]),
  activity: 'downloading 4.9 KiB',
}
const wide = { ...board, statuses: new Map([['狐'.repeat(30), '狸']]) }

it.each<[string, Board, number, string]>([
  ['whole', one, 60, 'processing · run_9f16k352rrqtqcnggw31 41 s'],
  ['cut', one, 30, 'processing · run_9f1… 41 s'],
  ['the time alone on a narrow terminal', one, 8, ' 41 s'],
  [
    'that of a download',
    going,
    120,
    'processing · downloading 3.0 MiB of 12.0 MiB · run_9f16k352rrqtqcnggw31 41 s',
  ],
  ['one for several runs', many, 80, '2 of 4 left · downloading 4.9 KiB · 2 succeeded, 1 queued 41 s'],
  ['one for several runs, cut', many, 24, '2 of 4 left · … 41 s'],
  ['"starting" before a run has a status', { ...board, statuses: new Map() }, 80, 'starting 41 s'],
])('the line beside the spinner is %s', (_, given, columns, line) => {
  const { text, time } = spinnerText(given, 41_000, columns)
  expect(`${text} ${time}`).toBe(line)
})

it('the line beside the spinner fits whatever the width, in columns and not in characters', () => {
  for (const given of [one, going, many, wide])
    for (let columns = 5; columns < 130; columns += columns < 40 ? 1 : 7) {
      const { text, time } = spinnerText(given, 3_000_000, columns)
      expect(columnsOf(`${text} ${time}`.trim())).toBeLessThanOrEqual(columns - 4)
    }
})

/** A spinner would fail on these streams, or write escapes to them. */
it.each<[string, readonly string[], Environment, number, RegExp]>([
  ['--quiet', ['--quiet'], {}, 80, /^$/],
  ['--json', ['--json'], {}, 80, /^$/],
  ['CI', [], { CI: 'true' }, 80, /^(run_\w+: \w+ \(\d s\)\n)+.*Done in [^\r]+\n$/s],
  ['TERM=dumb', [], { TERM: 'dumb' }, 80, /^(run_\w+: \w+ \(\d s\)\n)+Done in [^\r]+\n$/],
  ['0 columns', [], {}, 0, /^(run_\w+: \w+ \(\d s\)\n)+.*Done in [^\r]+\n$/s],
])('a terminal without a spinner %s', async (_, words, env, columns, says) => {
  const service = await createCliService()
  const tty = { stderr: true }
  const { code, stderr } = await service.run(['run', 'image', 'fox', ...words], {
    tty,
    columns,
    env: env as Record<string, string>,
  })
  expect(code).toBe(0)
  expect(stderr).not.toContain('\u001b')
  expect(stderr).toMatch(says)
})

it.each<[Environment, boolean, boolean, boolean]>([
  [{}, true, true, true],
  [{}, false, true, false],
  [{}, true, false, false],
  [{ TERM: 'dumb' }, true, true, false],
  [{ NO_COLOR: '1' }, true, true, false],
  [{ FORCE_COLOR: '1' }, false, true, true],
  [{ FORCE_COLOR: '0' }, true, true, false],
  [{ FORCE_COLOR: 'false' }, true, true, false],
  [{ FORCE_COLOR: '1', NO_COLOR: '1' }, true, true, false],
])('colour follows the environment %j, a terminal: %s, and colour allowed: %s', (env, isTTY, color, has) => {
  const { level } = createStyle({ isTTY } as never, env, { color })
  expect(level > 0).toBe(has)
})

it('the line of each minute says of no run that it downloads whose outputs are only printed', async () => {
  const clock = createManualClock()
  const notes: string[] = []
  const out = { mode: {}, note: (text: string) => void notes.push(text) }
  const view = await RunsView.open({ clock, out, stderr: {}, env: {} } as unknown as Context, 2)
  const run = { id: 'run_1', row: {} } as Run
  view.see({ is: 'status', run, state: { status: 'succeeded', phase: 'succeeded' } as RunState })
  view.see({ is: 'ended', run, result: { is: 'done' } as unknown as Result })
  await clock.advance(60_000)
  expect(notes.at(-1)).toBe('still waiting for 1 of 2 runs (1 succeeded, 1 min 00 s)')
})
