/** Thousands of runs: whatever their number, a time limit or a signal ends a command at once. */
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { openDatabase } from '../../src/host/database.js'
import type { Fetch } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { JOURNAL_MIGRATIONS } from '../../src/journal/rows.js'
import type { Ran } from '../support/cli.js'
import { expectLinearTimes, LARGER } from '../support/growth.js'
import { createManualClock, runCli, SET, scripted, temporaryFolder, withJournal } from '../support/index.js'

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

const running = scripted({ status: 200, body: { status: 'processing' } })

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
  let requests = 0
  const fetch: Fetch = async (request) => {
    requests++
    if (hasSignal && requests === 20) {
      before = process.cpuUsage()
      interrupts.interrupt('SIGINT')
    }
    return running.fetch(request)
  }
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
  return { ...ran, requests, endedIn: user + system }
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

it('a command on a dozen runs resumes with the same command when it named them one by one', async () => {
  const { code, stderr } = await runCli(['wait', ...ids, '--timeout', '5s', '--quiet'], {
    ...{ env: SET, fetch: running.fetch },
  })
  expect({ code, stderr }).toEqual({
    code: 11,
    stderr: 'error: 12 runs are still running after 5 s.\n  Resume with the same command.\n',
  })
})

it('a command on a dozen runs says once that they are not finished, if it is `download`', async () => {
  const { code, stderr } = await runCli(['download', ...ids, '--quiet'], {
    ...{ env: SET, fetch: running.fetch },
  })
  expect({ code, stderr }).toEqual({
    code: 11,
    stderr: 'error: 12 runs are not finished.\n  Resume with the same command.\n',
  })
})

it('a command on a dozen runs names every one if it is `run` and no journal remembers them', async () => {
  let created = 0
  const { code, stderr } = await runCli('run image "a fox" -n 12 --timeout 20s --quiet', {
    // The state folder would be below a file.
    env: { ...SET, RUSHES_STATE_DIR: '/dev/null/state' },
    fetch: (request) =>
      request.method === 'POST'
        ? scripted({ status: 201, body: { id: `run_${created++}` } }).fetch(request)
        : running.fetch(request),
  })
  expect(code).toBe(11)
  expect(stderr).toContain(`Resume with \`rushes wait ${ids.join(' ')}\`.\n`)
})

it.each([
  ['ends with 11 at its limit if the service answered about one of them', 1, 11],
  ['ends with 9 at its limit if the service answered about none of them', 0, 9],
])('a command on a dozen runs %s', async (_, answered, exit) => {
  const clock = createManualClock()
  const { code } = await runCli(['wait', ...ids, '--timeout', '8s', '--quiet'], {
    ...{ env: SET, clock },
    fetch: async (request) => {
      if (Number(request.url.pathname.split('_').at(-1)) < answered) return running.fetch(request)
      for (;;) await clock.sleep(1_000, request.signal)
    },
  })
  expect(code).toBe(exit)
})

it('a command on thousands of runs ends with 11 at its limit, also for those that it never asked about', async () => {
  const { code, stderr } = await expectLinearEnd(['wait', '--all', '--timeout', '5s'], false)
  expect({ code, stderr }).toEqual({
    code: 11,
    stderr: 'error: 2500 runs are still running after 5 s.\n  Resume with the same command.\n',
  })
})

it('a command on thousands of runs ends at once after a signal, also for those that it never asked about', async () => {
  // The journal may not know them, and `wait --all` does not find those that have ended.
  const { code, stderr, requests } = await expectLinearEnd(['download', '-'], true)
  expect(code).toBe(130)
  expect(stderr).toMatch(
    /error: Interrupted\. 2(48|49|50)\d runs are not finished\.\n {2}Resume with the same command\.\n/,
  )
  expect(requests).toBeLessThan(25)
})

it.each([
  ['wait --all', ' 250 runs are still running.\n  Resume with the same command.'],
  ['status -', ''],
])('a command on thousands of runs says after a signal how to resume: `%s`', async (words, says) => {
  const { code, stderr, requests } = await ended(words.split(' '), MANY / LARGER, true)
  expect(code).toBe(130)
  expect(stderr).toContain(`error: Interrupted.${says}\n`)
  expect(requests).toBeLessThan(25)
})
