/** Commands that stop half way: what they say of the runs that exist, and how to create the others. */
import { rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { LOOPBACK_URL, runCli, SET, scripted } from '../support/cli.js'
import { bodyOf, createFamily } from '../support/family.js'
import { rowsOf } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const RUN = ['run', 'image', 'a fox']
const FOX = { name: 'fox', prompt: 'a fox' }
const HEN = { name: 'hen', prompt: 'a hen' }
const NO_BALANCE = { status: 402, body: { error: { code: 'insufficient_balance', message: 'no credits' } } }

/** Accepts creates until `accepted` exist, then does `otherwise`. Runs succeed at once. */
function accepting(accepted: number, otherwise: Fetch) {
  let creates = 0
  const fetch: Fetch = (request) => {
    if (request.method === 'GET')
      return scripted({
        status: 200,
        body: { status: 'succeeded', output: { urls: [`${LOOPBACK_URL}/a.png`] } },
      }).fetch(request)
    if (creates++ >= accepted) return otherwise(request)
    return scripted({ status: 201, body: { id: `run_${creates}` } }).fetch(request)
  }
  return { fetch, creates: () => creates }
}

const refusing = scripted(NO_BALANCE).fetch
const down: Fetch = async () => {
  throw new HttpFailure('the connection was refused', { sent: false })
}
const losing: Fetch = async () => {
  throw new HttpFailure('the connection was reset', { sent: true })
}

describe('run -n', () => {
  it.each([
    ['waits', []],
    ['does not wait', ['--no-wait']],
  ])(
    'that ends without credits says that six exist and how to create the two, where it %s',
    async (_, more) => {
      const { fetch } = accepting(6, refusing)
      const { code, stdout, stderr } = await runCli([...RUN, '-n', '8', ...more], { env: SET, fetch })
      expect([code, stdout.split('\n').length - 1]).toEqual([5, 6])
      expect(stderr).toMatch(
        /6 of 8 runs were created and are paid for\.\n {2}Add credits .* To create the other 2, run the same command with `-n 2`\.\n/,
      )
      expect(stderr).not.toMatch(/No run was created|command again|try again/)
    },
  )

  it('says it under --json too', async () => {
    const { fetch } = accepting(1, refusing)
    const { stderr } = await runCli([...RUN, '-n', '2', '--json'], { env: SET, fetch })
    const [line = ''] = stderr.split('\n')
    expect(JSON.parse(line).error).toMatchObject({
      code: 'insufficient_balance',
      message: expect.stringContaining('1 of 2 runs was created and is paid for.'),
      hint: expect.stringContaining('To create the missing one, run the same command with `-n 1`.'),
    })
  })

  it('advises in none of two errors to run the command again', async () => {
    let attempts = 0
    const { fetch } = accepting(1, async (request) => {
      // The tries of the four creates that are in flight.
      if (++attempts > 12) return refusing(request)
      return down(request)
    })
    const env = { ...SET, RUSHES_BASE_URL: 'https://api.example.com' }
    const { code, stderr } = await runCli([...RUN, '-n', '6', '--no-wait'], { env, fetch })
    expect(code).toBe(5)
    expect(stderr).toContain('Could not reach api.example.com')
    expect(stderr).toContain('To create the other 5, run the same command with `-n 5`.')
    expect(stderr).not.toContain('try again')
  })

  it('names what to do about a certificate, and how many runs exist', async () => {
    const advice = 'This machine does not trust the certificate.'
    const { fetch } = accepting(1, async () => {
      throw new HttpFailure('TLS failed', { sent: false, advice })
    })
    const { stderr } = await runCli([...RUN, '-n', '2', '--no-wait'], { env: SET, fetch })
    expect(stderr).toContain(
      `1 of 2 runs was created and is paid for.\n  ${advice} To create the missing one`,
    )
  })

  it('mentions no paid runs when it creates nothing', async () => {
    const { fetch } = accepting(0, refusing)
    const { stderr } = await runCli([...RUN, '-n', '3'], { env: SET, fetch })
    expect(stderr).toContain('0 of 3 runs were created.')
    expect(stderr).not.toMatch(/paid for\.$|same command/m)
  })

  it('reports lost responses in one error, with the keys of all', async () => {
    const { fetch } = accepting(1, losing)
    const home = temporaryFolder()
    const { code, stderr } = await runCli([...RUN, '-n', '5', '--no-wait'], { env: SET, fetch, home })
    expect(code).toBe(13)
    const keys = rowsOf(home).flatMap(({ key }) => key ?? [])
    expect(keys).toHaveLength(4)
    expect(stderr.match(/^error: /gm)).toHaveLength(2)
    expect(stderr).toMatch(
      /error: 3 more creates: .* 1 of 5 runs was created and is paid for, 4 unconfirmed\.$/m,
    )
    for (const key of keys) expect(stderr).toContain(key)
  })
})

describe('a service that is down', () => {
  it('gets one create from run -n, and nothing is paid', async () => {
    const { fetch, creates } = accepting(0, down)
    const { code, stderr } = await runCli([...RUN, '-n', '30', '--yes'], { env: SET, fetch })
    // The tries of one create.
    expect([code, creates()]).toEqual([9, 3])
    expect(stderr).toContain('0 of 30 runs were created.')
  })

  it('gets one create from a batch of thirty rows, and the others are reported as not started', async () => {
    const batch = await createFamily(
      Array.from({ length: 30 }, (_, at) => ({ name: `r${at}`, prompt: `${at}` })),
    )
    const { fetch, creates } = accepting(0, down)
    const before = batch.service.clock.monotonic()
    const { code, stderr } = await batch.run([], { fetch })
    expect([code, creates()]).toEqual([9, 3])
    expect(batch.service.clock.monotonic() - before).toBeLessThan(10_000)
    expect(stderr).toMatch(/^30 runs: 1 failed, 29 not started/m)
    expect(stderr).toMatch(/Continue with `rushes batch \S+`/)
  })

  it('does not stop creates where one was accepted before', async () => {
    const { fetch, creates } = accepting(1, down)
    await runCli([...RUN, '-n', '4', '--no-wait'], { env: SET, fetch })
    expect(creates()).toBe(1 + 3 * 3)
  })
})

describe('a batch that stops half way', () => {
  it.each([403, 404, 410])(
    'names the command that pays again for an output that answers %i',
    async (status) => {
      const batch = await createFamily([{ name: 'fox', prompt: 'a fox' }])
      const gone = scripted({ status })
      const fetch: Fetch = (request) =>
        request.url.pathname.startsWith('/outputs') ? gone.fetch(request) : batch.service.counting(request)
      const { code, stderr } = await batch.run([], { fetch })
      expect([code, batch.created()]).toEqual([12, ['a fox']])
      expect(stderr).toMatch(/Download it with `rushes batch \S+`: nothing is paid again\./)
      expect(stderr).toMatch(/To create it again and pay again: `rushes batch \S+ --only fox --force`/)
    },
  )

  it('names the command that continues it, without --force, which would pay again', async () => {
    const batch = await createFamily(
      Array.from({ length: 4 }, (_, at) => ({ name: `r${at}`, prompt: `${at}` })),
    )
    let creates = 0
    const fetch: Fetch = (request) =>
      request.method === 'POST' && creates++ > 1 ? refusing(request) : batch.service.counting(request)
    const { code, stderr } = await batch.run(['--force', '--concurrency', '1'], { fetch })
    expect(code).toBe(5)
    expect(stderr).toMatch(/^4 runs: 2 created, 1 failed, 1 not started/m)
    expect(stderr).toMatch(
      /Continue with `rushes batch --concurrency 1 \S+`: runs that exist are not paid again\./,
    )
    expect(stderr).not.toMatch(/No run was created/)
    expect((await batch.run()).code).toBe(0)
    expect(batch.created()).toHaveLength(4)
  })

  it('names the command without --force that uses the result beside a file that was kept', async () => {
    const batch = await createFamily([{ name: 'fox', prompt: 'a fox' }])
    await batch.run()
    const fetch: Fetch = (request) => {
      if (request.url.pathname.startsWith('/outputs/')) writeFileSync(batch.path('fox.png'), 'edited')
      return batch.service.counting(request)
    }
    const { code, stderr } = await batch.run(['--force', '--concurrency', '1'], { fetch })
    expect(code).toBe(12)
    expect(stderr).toMatch(
      /move fox\.png away and run `rushes batch --concurrency 1 [^ `]+`: it renames fox-2\.png\./,
    )
    rmSync(batch.path('fox.png'))
    batch.created()
    expect((await batch.run(['--concurrency', '1'])).code).toBe(0)
    expect([batch.created(), batch.pictures()]).toEqual([[], ['fox.png']])
  })

  it('names the command without --force that continues with a lock file that was changed', async () => {
    const batch = await createFamily([FOX, HEN])
    await batch.run()
    const fetch: Fetch = (request) => {
      if (request.method === 'POST' && bodyOf(request.body).input.prompt === FOX.prompt)
        batch.editLock((runs) => {
          runs.hen = { ...runs.hen, made_at: '2026-01-01T00:00:00.000Z' }
        })
      return batch.service.counting(request)
    }
    const { code, stderr } = await batch.run(['--force', '--concurrency', '1'], { fetch })
    expect(code).toBe(12)
    expect(stderr).toMatch(/Continue with `rushes batch --concurrency 1 [^ `]+`: it goes by the lock file/)
  })

  it('names the command that downloads a run whose output is not there', async () => {
    const batch = await createFamily([{ name: 'fox', prompt: 'a fox' }])
    const fetch: Fetch = (request) =>
      request.url.pathname.startsWith('/outputs/')
        ? scripted({ status: 404 }).fetch(request)
        : batch.service.counting(request)
    const { code, stderr } = await batch.run(['--only', 'fox', '--force'], { fetch })
    expect(code).toBe(12)
    expect(stderr).toMatch(/Download it with `rushes batch --only fox \S+`: nothing is paid again\./)
    expect((await batch.run(['--only', 'fox'])).code).toBe(0)
    expect(batch.created()).toHaveLength(1)
  })
})
