import { expect, it } from 'vitest'
import { stopReasons } from '../../src/cli/batch/run-batch.js'
import { exitCodeOf } from '../../src/cli/runs/error-groups.js'
import { RushesError } from '../../src/errors.js'
import type { Fetch, HttpRequest } from '../../src/host/http.js'
import { createInterrupts, type InterruptSource } from '../../src/host/interrupts.js'
import type { ManualClock } from '../support/clock.js'
import {
  createHome,
  createManualClock,
  objects,
  outputOf,
  responseOf,
  runCli,
  type Scripted,
  withoutList,
} from '../support/index.js'

// Contract, section 4: the first that applies.
const ORDER = [13, 5, 4, 3, 7, 8, 9, 6, 10, 11, 12]
const errors = (...codes: readonly number[]) => codes.map((exitCode) => ({ exitCode }))

it.each(ORDER.slice(1).map((code, at) => [ORDER[at] ?? 0, code]))(
  'a command with several errors ends with exit %i rather than %i',
  (first, second) => {
    expect(exitCodeOf(errors(second, first))).toBe(first)
    expect(exitCodeOf(errors(first, second))).toBe(first)
  },
)

it('a command with several errors ends with the exit code of a signal first, then of a create that may have been paid for, then of a bug', () => {
  expect(exitCodeOf(errors(...ORDER, 1))).toBe(13)
  expect(exitCodeOf(errors(...ORDER.slice(1), 1))).toBe(1)
  expect(exitCodeOf(errors(13, 130))).toBe(130)
  // Something was sent, or is in doubt.
  expect(exitCodeOf(errors(2, 12))).toBe(12)
  expect(exitCodeOf(errors(2))).toBe(2)
  expect(exitCodeOf([])).toBe(0)
})

const failed = (message: string) => new RushesError('download_failed', message)
const stop = failed('Cannot write the lock file')

it.each([
  ['ends with the error that stopped it', [], stop, 2, [stop.message]],
  ['names that error beside the errors of its rows', [failed('fox')], stop, 2, [stop.message]],
  ['names an error once', [failed(stop.message)], stop, 2, []],
  ['needs no other reason than the error of a row', [failed('fox')], undefined, 2, []],
  ['never ends without an error', [], undefined, 2, ['Unexpected error: 2 runs were not started']],
  ['adds no error when all rows were started', [], undefined, 0, []],
])('a batch with rows that were not started %s', (_, known, stopped, notStarted, expected) => {
  expect(stopReasons(known, stopped, notStarted).map(({ message }) => message)).toEqual(expected)
})

it('status prints id, status and URLs separated by tabs, and exits 10 only when asked to', async () => {
  const { run } = createHome({
    answers: [{ status: 200, body: { status: 'Failed', error: { message: 'no' } } }],
  })
  expect(outputOf(await run('status a'))).toBe('a\tFailed\t\n')
  expect((await run('status a --exit-status')).code).toBe(10)
  expect(await run('wait a')).toMatchObject({ code: 10, stdout: '' })
})

/** Runs the command, and counts its requests. `answer` knows how to interrupt it. */
async function interrupted(
  line: string,
  answer: (
    request: HttpRequest,
    interrupt: InterruptSource['interrupt'],
    clock: ManualClock,
  ) => Promise<Scripted | undefined>,
) {
  const clock = createManualClock()
  const interrupts = createInterrupts()
  const requests: HttpRequest[] = []
  const fetch: Fetch = async (request) => {
    requests.push(request)
    const interrupt: InterruptSource['interrupt'] = (name) => interrupts.interrupt(name)
    return responseOf((await answer(request, interrupt, clock)) ?? { status: 200, body: { status: 'going' } })
  }
  const { run, rows } = createHome({ clock, interrupts, fetch: withoutList(fetch) })
  const ran = await run(line)
  return { ...ran, rows: rows(), requests, endedAtMs: clock.monotonic() }
}
const accepted = (id: string): Scripted => ({ status: 201, body: { id } })

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)(
  '%s during a wait ends a command with exit %d, and the message says how to resume',
  async (name, exit) => {
    let requests = 0
    const { code, stderr } = await interrupted('run image fox', async ({ method }, interrupt) => {
      if (++requests === 4) interrupt(name)
      return method === 'POST' ? accepted('run_7') : undefined
    })
    expect(code).toBe(exit)
    expect(stderr).toContain(
      'error: Interrupted. run_7 is still running.\n  Resume with `rushes wait run_7`. Stop it with `rushes cancel run_7`.\n',
    )
  },
)

it('a signal during a wait is reported under --json as JSON alone, also with --debug', async () => {
  let requests = 0
  const { stdout, stderr } = await interrupted(
    'run image fox --json --debug',
    async ({ method }, interrupt) => {
      if (++requests === 4) interrupt('SIGTERM')
      return method === 'POST' ? accepted('run_7') : undefined
    },
  )
  expect(objects(stderr).filter((line) => 'error' in line)).toMatchObject([
    { error: { code: 'interrupted', exit_code: 143, run_id: 'run_7' } },
  ])
  expect(objects(stdout)).toMatchObject([{ id: 'run_7', error: { code: 'interrupted' } }])
})

it('a command waits after a signal for the response to its create, so that the id is known', async () => {
  const { code, stderr } = await interrupted('run image fox', async ({ signal }, interrupt, clock) => {
    interrupt('SIGINT')
    await clock.sleep(5_000, signal)
    return accepted('run_7')
  })
  expect(code).toBe(130)
  expect(stderr).toContain('Waiting up to 10 s for the response')
  expect(stderr).toContain('rushes wait run_7')
})

it.each([
  ['ten seconds', 1, 10_000],
  ['a second signal', 2, 0],
])('%s end the wait for the response to a create, which is unconfirmed', async (_, signals, atMs) => {
  const ran = await interrupted('run image fox', async ({ signal }, interrupt, clock) => {
    for (let sent = 0; sent < signals; sent++) interrupt('SIGINT')
    for (;;) await clock.sleep(1_000, signal)
  })
  expect([ran.code, ran.endedAtMs]).toEqual([130, atMs])
  expect(ran.stderr).toContain('a run may exist and cost money')
  expect(ran.rows).toMatchObject([{ phase: 'unconfirmed', error: { code: 'interrupted' } }])
  expect(ran.stderr).toContain(`rushes forget '${ran.rows[0]?.key}'`)
})

it.each<[string, boolean, (clock: ManualClock, interrupt: () => void, signal?: AbortSignal) => unknown]>([
  [
    'during the wait before a refused create is sent again',
    false,
    (clock, interrupt) => void clock.sleep(2_000).then(interrupt),
  ],
  [
    'before the refusal that it waited for',
    true,
    (clock, interrupt, signal) => {
      interrupt()
      return clock.sleep(2_000, signal)
    },
  ],
])('a signal %s ends a command at once, because no run exists', async (_, waits, when) => {
  const ran = await interrupted('run image fox', async ({ signal }, interrupt, clock) => {
    await when(clock, () => interrupt('SIGINT'), signal)
    return { status: 429, headers: { 'retry-after': '30' } }
  })
  expect([ran.code, ran.endedAtMs, ran.requests.length]).toEqual([130, 2_000, 1])
  expect(ran.stderr).toContain('Interrupted. No run was created.')
  expect(ran.stderr).not.toContain('may exist')
  expect(ran.stderr.includes('Waiting up to')).toBe(waits)
})

it('a signal stops further creates, and the message names the runs that exist', async () => {
  let count = 0
  const { code, stderr, requests } = await interrupted('run image fox -n 9', async (_, interrupt) => {
    if (++count === 3) interrupt('SIGINT')
    return accepted(`run_${count}`)
  })
  expect(code).toBe(130)
  const created = requests.filter(({ method }) => method === 'POST').length
  expect(created).toBeLessThanOrEqual(5)
  const ids = Array.from({ length: created }, (_, at) => `run_${at + 1}`).join(' ')
  expect(stderr).toContain(`Interrupted. ${created} runs are still running.`)
  expect(stderr).toContain(`${created} of 9 runs were created and are paid for.\n`)
  expect(stderr).toContain(
    `Resume with \`rushes wait ${ids}\`. Stop them with \`rushes cancel ${ids}\`. To create the other ${9 - created}, run the same command with \`-n ${9 - created}\`.\n`,
  )
})

it('a command whose reader of standard output is gone ends silently with exit 141, and sends nothing', async () => {
  const interrupts = createInterrupts()
  interrupts.interrupt('stdout closed')
  const { run, requests } = createHome({ answers: [], interrupts })
  expect(await run('run image fox')).toMatchObject({ code: 141, stderr: '' })
  expect(requests).toEqual([])
})

it('a command whose reader goes away waits for the response to its create, and the journal has its id', async () => {
  const ran = await interrupted('run image fox', async ({ signal }, interrupt, clock) => {
    interrupt('stdout closed')
    interrupt('stdout closed')
    await clock.sleep(5_000, signal)
    return accepted('run_7')
  })
  expect(ran).toMatchObject({ code: 141, stderr: '', rows: [{ id: 'run_7' }] })
})

it('messages on a terminal break at spaces, but not inside a command that can be copied', async () => {
  const { stderr } = await runCli('wait run_1', { env: {}, tty: { stderr: true }, columns: 60 })
  const lines = stderr.trimEnd().split('\n')
  expect(lines.length).toBeGreaterThan(3)
  expect(lines.filter((line) => line.length > 60 && !/^ *`[^`]*`\S*$/.test(line))).toEqual([])
  expect(stderr).toMatch(/`rushes config set baseUrl <url>`/)
})

it('messages name the profile of the line in commands that change settings', async () => {
  const { run } = createHome({ env: {} })
  await run('config set models.video acme/cinema-1 --profile staging')
  const { stderr } = await run('run image fox --profile staging')
  for (const command of [
    'login --profile staging --base-url <url>',
    'config set --profile staging models.image',
  ])
    expect(stderr).toContain(`\`rushes ${command}`)
})

it('messages name `npx rushes` when it is run by npx', async () => {
  const { stderr } = await runCli('wait run_1', { env: { npm_command: 'exec', npm_lifecycle_event: 'npx' } })
  expect(stderr).toContain('`npx rushes config set baseUrl <url>`')
  expect((await runCli('wait run_1', { env: { npm_command: 'run-script' } })).stderr).not.toContain('npx')
})
