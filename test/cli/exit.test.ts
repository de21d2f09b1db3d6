import { expect, it } from 'vitest'
import { stopReasons } from '../../src/cli/batch/run-batch.js'
import { exitCodeOf } from '../../src/cli/process/exit.js'
import { RushesError } from '../../src/errors.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import type { ManualClock } from '../support/clock.js'
import { createManualClock, runCli, SET, scripted, temporaryFolder, withoutList } from '../support/index.js'

// Contract, section 4: the first that applies.
const ORDER = [13, 5, 4, 3, 7, 8, 9, 6, 10, 11, 12]
const errors = (...codes: readonly number[]) => codes.map((exitCode) => ({ exitCode }))

it.each(ORDER.slice(1).map((code, at) => [ORDER[at] ?? 0, code]))(
  'of the exit codes of several errors, %i goes before %i',
  (first, second) => {
    expect(exitCodeOf(errors(second, first))).toBe(first)
    expect(exitCodeOf(errors(first, second))).toBe(first)
  },
)

it('the exit code of several errors puts a signal first, then a create that may have been paid for, then a bug', () => {
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
  const failed = { status: 200, body: { status: 'Failed', error: { message: 'no' } } }
  expect(await runCli('status a', { env: SET, fetch: scripted(failed).fetch })).toMatchObject({
    code: 0,
    stdout: 'a\tFailed\t\n',
  })
  expect(await runCli('status a --exit-status', { env: SET, fetch: scripted(failed).fetch })).toMatchObject({
    code: 10,
  })
  expect(await runCli('wait a', { env: SET, fetch: scripted(failed).fetch })).toMatchObject({
    code: 10,
    stdout: '',
  })
})

it('status and wait take ids from standard input, and nothing there for a failed left side', async () => {
  const { fetch, requests } = scripted({ status: 200, body: { status: 'going' } })
  expect(await runCli('status -', { env: SET, fetch, stdin: 'a\nb\n' })).toMatchObject({
    code: 0,
    stdout: 'a\tgoing\t\nb\tgoing\t\n',
  })
  expect((await runCli('status -', { env: SET, fetch, stdin: '\n' })).code).toBe(2)
  expect(requests).toHaveLength(2)
})

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('a signal %s during a wait ends with %d and says how to resume', async (name, exit) => {
  const interrupts = createInterrupts()
  const fetch = scripted({ status: 201, body: { id: 'run_7' } }, { status: 200, body: { status: 'going' } })
  const { code, stderr } = await runCli('run image fox', {
    env: SET,
    interrupts,
    fetch: withoutList(async (request) => {
      if (fetch.requests.length === 3) interrupts.interrupt(name)
      return fetch.fetch(request)
    }),
  })
  expect(code).toBe(exit)
  expect(stderr).toContain(
    'error: Interrupted. run_7 is still running.\n  Resume with `rushes wait run_7`. Stop it with `rushes cancel run_7`.\n',
  )
})

it('a signal waits for the answer to a create, so that the id is known', async () => {
  const clock = createManualClock()
  const interrupts = createInterrupts()
  const { code, stderr } = await runCli('run image fox', {
    env: SET,
    clock,
    interrupts,
    fetch: withoutList(async (request) => {
      interrupts.interrupt('SIGINT')
      await clock.sleep(5_000, request.signal)
      return scripted({ status: 201, body: { id: 'run_7' } }).fetch(request)
    }),
  })
  expect(code).toBe(130)
  expect(stderr).toContain('Waiting up to 10 s for the response')
  expect(stderr).toContain('rushes wait run_7')
})

it.each([
  ['ten seconds', 1, 10_000],
  ['a second signal', 2, 0],
])('after a signal, %s end the wait for the answer to a create', async (_, signals, atMs) => {
  const clock = createManualClock()
  const interrupts = createInterrupts()
  const { code, stderr } = await runCli('run image fox', {
    env: SET,
    clock,
    interrupts,
    fetch: withoutList(async (request) => {
      for (let sent = 0; sent < signals; sent++) interrupts.interrupt('SIGINT')
      for (;;) await clock.sleep(1_000, request.signal)
    }),
  })
  expect(code).toBe(130)
  expect(clock.monotonic()).toBe(atMs)
  expect(stderr).toContain('a run may exist and cost money')
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
])('a signal ends the command at once %s, since no run exists', async (_, waits, when) => {
  const clock = createManualClock()
  const interrupts = createInterrupts()
  const { fetch, requests } = scripted({ status: 429, headers: { 'retry-after': '30' } })
  const { code, stderr } = await runCli('run image fox', {
    env: SET,
    clock,
    interrupts,
    fetch: withoutList(async (request) => {
      await when(clock, () => interrupts.interrupt('SIGINT'), request.signal)
      return fetch(request)
    }),
  })
  expect([code, clock.monotonic(), requests.length]).toEqual([130, 2_000, 1])
  expect(stderr).toContain('Interrupted. No run was created.')
  expect(stderr).not.toContain('may exist')
  expect(stderr.includes('Waiting up to')).toBe(waits)
})

it('a signal stops further creates, and those that were answered are told of', async () => {
  const interrupts = createInterrupts()
  const requests: string[] = []
  const { code, stderr } = await runCli('run image fox -n 9', {
    env: SET,
    interrupts,
    fetch: withoutList(async (request) => {
      requests.push(request.method)
      if (requests.length === 3) interrupts.interrupt('SIGINT')
      return scripted({ status: 201, body: { id: `run_${requests.length}` } }).fetch(request)
    }),
  })
  expect(code).toBe(130)
  const created = requests.filter((method) => method === 'POST').length
  expect(created).toBeLessThanOrEqual(5)
  const ids = Array.from({ length: created }, (_, at) => `run_${at + 1}`)
  expect(stderr).toContain(`Interrupted. ${created} runs are still running.`)
  expect(stderr).toContain(`${created} of 9 runs were created and are paid for.\n`)
  expect(stderr).toContain(
    `Resume with \`rushes wait ${ids.join(' ')}\`. Stop them with \`rushes cancel ${ids.join(' ')}\`. To create the other ${9 - created}, run the same command with \`-n ${9 - created}\`.\n`,
  )
})

it('a signal ends silently with exit 141 when the reader of standard output went away', async () => {
  const interrupts = createInterrupts()
  interrupts.interrupt('stdout closed')
  const { fetch, requests } = scripted({ status: 500 })
  expect(await runCli('run image fox', { env: SET, interrupts, fetch })).toMatchObject({
    code: 141,
    stderr: '',
  })
  expect(requests).toHaveLength(0)
})

it('a signal still waits for the answer to a create, which the journal keeps', async () => {
  const clock = createManualClock()
  const interrupts = createInterrupts()
  const home = temporaryFolder()
  const env = { ...SET, HOME: home, RUSHES_STATE_DIR: home }
  const ended = await runCli('run image fox', {
    env,
    clock,
    interrupts,
    fetch: withoutList(async (request) => {
      interrupts.interrupt('stdout closed')
      interrupts.interrupt('stdout closed')
      await clock.sleep(5_000, request.signal)
      return scripted({ status: 201, body: { id: 'run_7' } }).fetch(request)
    }),
  })
  expect(ended).toMatchObject({ code: 141, stderr: '' })
  expect((await runCli('list', { env })).stdout).toMatch(/^run_7\t/)
})

const onTerminal = (env: Readonly<Record<string, string>> = {}) =>
  runCli('wait run_1', { env, tty: { stderr: true }, columns: 60 })

it('messages on a terminal break at spaces, but not inside a command that can be copied', async () => {
  const { stderr } = await onTerminal()
  const lines = stderr.trimEnd().split('\n')
  expect(lines.length).toBeGreaterThan(3)
  expect(lines.filter((line) => line.length > 60 && !/^ *`[^`]*`\S*$/.test(line))).toEqual([])
  expect(stderr).toMatch(/`rushes config set baseUrl <url>`/)
})

it('messages on a terminal name `npx rushes` when it runs so', async () => {
  const { stderr } = await onTerminal({ npm_command: 'exec', npm_lifecycle_event: 'npx' })
  expect(stderr).toContain('`npx rushes config set baseUrl <url>`')
  expect((await onTerminal({ npm_command: 'run-script' })).stderr).not.toContain('npx')
})
