/** Thousands of runs: whatever their number, a time limit or a signal ends a command at once. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { openDatabase } from '../../src/host/database.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { JOURNAL_MIGRATIONS } from '../../src/journal/rows.js'
import type { Ran } from '../support/cli.js'
import { expectLinearTimes, LARGER } from '../support/growth.js'
import {
  createHome,
  createManualClock,
  runCli,
  SET,
  scripted,
  temporaryFolder,
  withJournal,
} from '../support/index.js'

const MANY = 2_500

const linesOf = (runs: number) =>
  Array.from({ length: runs }, (_, at) => `run_${String(at).padStart(6, '0')}\n`).join('')

const homes = new Map<number, string>()
beforeAll(() => {
  for (const runs of [MANY, MANY / LARGER]) homes.set(runs, homeWith(runs))
})

function homeWith(runs: number): string {
  const home = temporaryFolder()
  withJournal(home, () => {})
  const db = openDatabase({ path: join(home, 'state', 'journal.db'), migrations: JOURNAL_MIGRATIONS })
  db.run(
    `WITH RECURSIVE numbers(at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM numbers WHERE at < ? - 1)
     INSERT INTO runs (address, id, profile, kind, model, input, identity, phase, status, created_at)
     SELECT 'http://127.0.0.1:1', printf('run_%06d', at), 'default', 'image', 'acme/still-1', '{"prompt":"a fox"}',
       at, 'going', 'accepted', 1767000000000 FROM numbers`,
    runs,
  )
  db.close()
  return home
}

const RUNNING = { status: 200, body: { status: 'processing' } }
const running = scripted(RUNNING)

interface Ended extends Ran {
  /** Processor time from the limit or the signal to the end, in microseconds. */
  readonly endedIn: number
  readonly requests: number
}

/** Runs a command on many runs that is ended by its limit of 5 s, or by a signal at the twentieth request. */
async function ended(words: readonly string[], runs: number, hasSignal: boolean): Promise<Ended> {
  const manual = createManualClock()
  const interrupts = createInterrupts()
  let before = process.cpuUsage()
  const { fetch, requests } = scripted(() => {
    if (hasSignal && requests.length === 20) {
      before = process.cpuUsage()
      interrupts.interrupt('SIGINT')
    }
    return RUNNING
  })
  const clock = {
    ...manual,
    alarm: (ms: number, ring: () => void) =>
      manual.alarm(ms, () => {
        if (ms === 5_000) before = process.cpuUsage()
        ring()
      }),
  }
  const home = homes.get(runs) ?? expect.unreachable()
  const stdin = words.includes('-') ? { stdin: linesOf(runs) } : {}
  const ran = await runCli([...words, '--quiet'], { ...stdin, env: SET, home, clock, interrupts, fetch })
  const { user, system } = process.cpuUsage(before)
  return { ...ran, requests: requests.length, endedIn: user + system }
}

/** Checks that the time to the end grows with the number of runs, and not with its square. */
async function expectLinearEnd(words: readonly string[], hasSignal: boolean): Promise<Ended> {
  let last: Ended | undefined
  await expectLinearTimes(MANY, async (runs) => {
    last = await ended(words, runs, hasSignal)
    return last.endedIn
  })
  return last ?? expect.unreachable()
}

const ids = Array.from({ length: 12 }, (_, at) => `run_${at}`)

it.each([
  [['wait', ...ids, '--timeout', '5s'], '12 runs are still running after 5 s.'],
  [['download', ...ids], '12 runs are not finished.'],
])(
  'a command that names a dozen running runs says once that it is resumed by itself: %j',
  async (words, message) => {
    expect(await runCli([...words, '--quiet'], { env: SET, fetch: running.fetch })).toMatchObject({
      code: 11,
      stderr: `error: ${message}\n  Resume with the same command.\n`,
    })
  },
)

it('a time limit that stops further creates says how many runs exist, and how to create the others', async () => {
  let created = 0
  const { fetch } = scripted(({ method }) =>
    method === 'POST' ? { status: 201, body: { id: `run_${created++}` } } : RUNNING,
  )
  const { code, stderr } = await runCli('run image "a fox" -n 25 --timeout 3s --quiet', { env: SET, fetch })
  expect(code).toBe(11)
  expect(created).toBeLessThan(25)
  expect(stderr).toContain(
    `${created} runs are still running after 3 s. ${created} of 25 runs were created and are paid for.\n`,
  )
  expect(stderr).toContain(
    `To create the other ${25 - created}, run the same command with \`-n ${25 - created}\`.`,
  )
})

it('run without a journal names each of a dozen running runs in the command that resumes', async () => {
  let created = 0
  const { code, stderr } = await runCli('run image "a fox" -n 12 --timeout 20s --quiet', {
    // The state folder would be below a file.
    env: { ...SET, RUSHES_STATE_DIR: '/dev/null/state' },
    fetch: scripted(({ method }) =>
      method === 'POST' ? { status: 201, body: { id: `run_${created++}` } } : RUNNING,
    ).fetch,
  })
  expect(code).toBe(11)
  expect(stderr).toContain(`Resume with \`rushes wait ${ids.join(' ')}\`.\n`)
})

it.each([1, 11])(
  'run that loses its journal after %i creates names each of its dozen running runs',
  async (after) => {
    const { home, run } = createHome()
    let created = 0
    const { stderr } = await run('run image "a fox" -n 12 --timeout 20s --quiet', {
      fetch: (request) => {
        if (request.method !== 'POST') return running.fetch(request)
        if (created === after) rmSync(join(home, 'state', 'journal.db'))
        return scripted({ status: 201, body: { id: `run_${created++}` } }).fetch(request)
      },
    })
    expect(stderr).toContain(`Resume with \`rushes wait ${ids.join(' ')}\`.\n`)
  },
)

it.each([
  [1, 11],
  [0, 9],
])(
  'wait for a dozen runs of which the service answers about %i ends with exit %i at its limit',
  async (answered, exit) => {
    const clock = createManualClock()
    const { code } = await runCli(['wait', ...ids, '--timeout', '8s', '--quiet'], {
      ...{ env: SET, clock },
      fetch: async (request) => {
        if (Number(request.url.pathname.split('_').at(-1)) < answered) return running.fetch(request)
        for (;;) await clock.sleep(1_000, request.signal)
      },
    })
    expect(code).toBe(exit)
  },
)

it('wait for thousands of runs ends with exit 11 at its limit, also without a request for each', async () => {
  const { code, stderr } = await expectLinearEnd(['wait', '--all', '--timeout', '5s'], false)
  expect({ code, stderr }).toEqual({
    code: 11,
    stderr: 'error: 2500 runs are still running after 5 s.\n  Resume with the same command.\n',
  })
})

it('download of thousands of runs ends at once after a signal, and counts also those without a request', async () => {
  // The journal may not know them, and `wait --all` does not find those that have ended.
  const { code, stderr, requests } = await expectLinearEnd(['download', '-'], true)
  expect(code).toBe(130)
  expect(stderr).toMatch(
    /error: Interrupted\. 2(48|49|50)\d runs are not finished\.\n {2}Resume with the same command\.\n/,
  )
  expect(requests).toBeLessThan(25)
})

it('status of hundreds of runs ends at once after a signal', async () => {
  const { code, stderr, requests } = await ended(['status', '-'], MANY / LARGER, true)
  expect(code).toBe(130)
  expect(stderr).toContain('error: Interrupted.\n')
  expect(requests).toBeLessThan(25)
})
