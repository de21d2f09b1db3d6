/** What `run` leaves in the journal, whatever becomes of the create. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { createInterrupts } from '../../src/cli/process/interrupts.js'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { createCliService, runCli, SET, scripted } from '../support/cli.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { rowsOf, stateBytes, withJournal } from '../support/journal.js'
import { temporaryFolder } from '../support/service.js'

const RUN = ['run', 'image', 'a fox']

describe('a run that goes well', () => {
  it('is in the journal before its bytes leave, has its id when the 201 was read, and its end', async () => {
    const service = await createCliService()
    const atSending: unknown[] = []
    const fetch: Fetch = (request) => {
      if (request.method === 'POST')
        atSending.push(...rowsOf(service.home).map(({ phase, id }) => ({ phase, id })))
      return service.fetch(request)
    }
    const { code, stdout } = await service.run([...RUN, '-o', `${temporaryFolder()}/fox.png`], { fetch })
    expect(code).toBe(0)
    expect(atSending).toEqual([{ phase: 'sending', id: undefined }])
    const [row] = rowsOf(service.home)
    expect(row).toMatchObject({
      id: expect.stringMatching(/^run_/),
      key: undefined,
      address: 'http://127.0.0.1:1',
      profile: 'default',
      kind: 'image',
      model: 'rushes/preview-image',
      input: { prompt: 'a fox' },
      phase: 'succeeded',
      status: 'succeeded',
      urls: [expect.stringMatching(/^http/)],
      error: undefined,
    })
    expect(row?.elapsedMs).toBeGreaterThan(0)
    const files = withJournal(service.home, (journal) => (row === undefined ? [] : journal.filesOf(row)))
    expect(files).toMatchObject([{ path: stdout.trim(), bytes: ONE_PIXEL_PNG.byteLength }])
  })

  it('keeps each of several, oldest last, under its profile', async () => {
    const service = await createCliService()
    const { stdout } = await service.run([...RUN, '-n', '3', '--no-wait', '--profile', 'studio'])
    const rows = rowsOf(service.home)
    expect(rows.map(({ id }) => id)).toEqual(stdout.trim().split('\n').reverse())
    expect(rows.map(({ phase, status, profile }) => [phase, status, profile])).toEqual(
      Array.from({ length: 3 }, () => ['going', 'queued', 'studio']),
    )
  })

  it('keeps of a picture what identifies it, and not its bytes', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'reference.png')
    writeFileSync(path, ONE_PIXEL_PNG)
    await service.run([...RUN, '-i', path])
    expect(rowsOf(service.home)[0]?.input).toEqual({
      prompt: 'a fox',
      image_urls: [
        {
          sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
          bytes: ONE_PIXEL_PNG.byteLength,
          content_type: 'image/png',
        },
      ],
    })
    expect(stateBytes(service.home).includes(ONE_PIXEL_PNG.toString('base64'))).toBe(false)
  })

  it('never holds the key', async () => {
    const service = await createCliService()
    await service.run(RUN)
    const bytes = stateBytes(service.home)
    expect(bytes.includes('a fox')).toBe(true)
    expect(bytes.includes(service.apiKey)).toBe(false)
  })
})

describe('a create that was certainly not accepted leaves no row', () => {
  it.each([
    [400, 'invalid_input', 3],
    [401, 'invalid_api_key', 4],
    [402, 'insufficient_balance', 5],
    [429, 'USAGE_EXCEEDED', 5],
    [429, 'RATE_LIMITED', 7],
    [302, '', 8],
  ])('%i %s', async (status, code, exit) => {
    const home = temporaryFolder()
    const { fetch } = scripted({ status, body: { error: { code, message: 'no' } } })
    expect((await runCli(RUN, { fetch, home, env: SET })).code).toBe(exit)
    expect(rowsOf(home)).toEqual([])
  })

  it('no connection', async () => {
    const home = temporaryFolder()
    const fetch: Fetch = async () => {
      throw new HttpFailure('the connection was refused', { sent: false, code: 'ECONNREFUSED' })
    }
    expect((await runCli(RUN, { fetch, home, env: SET })).code).toBe(9)
    expect(rowsOf(home)).toEqual([])
  })

  it('a 429 is none while it is waited out: there is one row at each sending', async () => {
    const service = await createCliService()
    const seen: number[] = []
    let turnedAway = 0
    const fetch: Fetch = (request) => {
      if (request.method !== 'POST') return service.fetch(request)
      seen.push(rowsOf(service.home).length)
      return turnedAway++ < 2 ? scripted({ status: 429 }).fetch(request) : service.fetch(request)
    }
    expect((await service.run(RUN, { fetch })).code).toBe(0)
    expect(seen).toEqual([1, 1, 1])
    expect(rowsOf(service.home)).toHaveLength(1)
  })
})

describe('a create whose outcome is unknown', () => {
  it('stays as unconfirmed, with what was sent and what came back, and the message names its key', async () => {
    const home = temporaryFolder()
    const { fetch } = scripted({ status: 500, body: '<html>oops</html>' })
    const { code, stderr } = await runCli(RUN, { fetch, home, env: SET })
    expect(code).toBe(13)
    const [row, ...others] = rowsOf(home)
    expect(others).toEqual([])
    expect(row).toMatchObject({
      id: undefined,
      key: expect.stringMatching(/^~[0-9a-f]{4}$/),
      phase: 'unconfirmed',
      status: 'unconfirmed',
      input: { prompt: 'a fox' },
      error: { code: 'submission_unknown' },
      answer: { status: 500, text: '<html>oops</html>' },
    })
    expect(stderr).toContain(`rushes forget ${row?.key}`)
  })

  it('keeps a lost answer', async () => {
    const home = temporaryFolder()
    const fetch: Fetch = async () => {
      throw new HttpFailure('read ECONNRESET', { sent: true, code: 'ECONNRESET' })
    }
    expect((await runCli(RUN, { fetch, home, env: SET })).code).toBe(13)
    expect(rowsOf(home)).toMatchObject([{ phase: 'unconfirmed', answer: undefined }])
  })

  it('keeps the whole answer of a run that was accepted without an id', async () => {
    const home = temporaryFolder()
    const { fetch } = scripted({ status: 201, body: { accepted: true, ticket: { uuid: 'x1' } } })
    const { code, stderr } = await runCli(RUN, { fetch, home, env: SET })
    expect(code).toBe(13)
    expect(stderr).toContain('"uuid":"x1"')
    expect(rowsOf(home)[0]?.answer).toEqual({ status: 201, text: '{"accepted":true,"ticket":{"uuid":"x1"}}' })
  })

  it('takes a key that the service shows back out of what it keeps and says', async () => {
    const home = temporaryFolder()
    const secret = 'rk_very_secret_key'
    const { fetch } = scripted({ status: 500, body: { error: { message: `bad header: Bearer ${secret}` } } })
    const { stdout, stderr } = await runCli([...RUN, '--debug'], {
      fetch,
      home,
      env: { ...SET, RUSHES_API_KEY: secret },
    })
    expect(`${stdout}${stderr}`).not.toContain(secret)
    expect(stderr).toContain('Bearer [API key]')
    expect(stateBytes(home).includes(secret)).toBe(false)
  })

  it('is left by a second signal while the answer is awaited', async () => {
    const home = temporaryFolder()
    const interrupts = createInterrupts()
    const fetch: Fetch = ({ signal }) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason))
        interrupts.interrupt('SIGINT')
        interrupts.interrupt('SIGINT')
      })
    const { code, stderr } = await runCli(RUN, { fetch, home, interrupts, env: SET })
    expect(code).toBe(130)
    expect(rowsOf(home)).toMatchObject([{ phase: 'unconfirmed', error: { code: 'interrupted' } }])
    expect(stderr).toMatch(/rushes forget ~[0-9a-f]{4}/)
  })
})

describe('a state folder', () => {
  it('that cannot be written is said once, and the command goes on', async () => {
    const service = await createCliService()
    const inTheWay = join(service.home, 'file')
    writeFileSync(inTheWay, '')
    const { code, stdout, stderr } = await service.run(RUN, {
      env: { RUSHES_STATE_DIR: join(inTheWay, 'state') },
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^http/)
    expect(stderr.match(/will not remember these runs/g)).toHaveLength(1)
    expect(stderr.match(/it is kept within this one/g)).toHaveLength(1)
  })

  it.each(['journal.db', 'limits.db'])(
    'of a newer format (%s) is refused, and nothing is sent',
    async (name) => {
      const service = await createCliService()
      await service.run(RUN)
      const sent = service.requests.length
      const database = new Database(join(service.home, 'state', name))
      database.exec('PRAGMA user_version = 99')
      database.close()
      const { code, stderr } = await service.run(RUN)
      expect(code).toBe(2)
      expect(stderr).toMatch(/newer version of rushes/)
      expect(service.requests).toHaveLength(sent)
    },
  )

  it('with a damaged journal goes on with a new one, and the old one is kept', async () => {
    const service = await createCliService()
    mkdirSync(join(service.home, 'state'), { recursive: true })
    writeFileSync(
      join(service.home, 'state', 'journal.db'),
      'no database at all, but long enough to be read'.repeat(100),
    )
    const { code, stderr } = await service.run(RUN)
    expect(code).toBe(0)
    expect(stderr.match(/is damaged/g)).toHaveLength(1)
    expect(
      readdirSync(join(service.home, 'state')).filter((name) => name.includes('.damaged-')),
    ).toHaveLength(1)
    expect(rowsOf(service.home)).toHaveLength(1)
  })

  it('whose journal breaks while a create is on its way is said once, and the run goes on', async () => {
    const service = await createCliService()
    const fetch: Fetch = (request) => {
      if (request.method === 'POST') {
        const database = new Database(join(service.home, 'state', 'journal.db'))
        database.exec('DROP TABLE files; DROP TABLE runs')
        database.close()
      }
      return service.fetch(request)
    }
    const { code, stdout, stderr } = await service.run(RUN, { fetch })
    expect({ code, urls: stdout.trim().split('\n').length }).toEqual({ code: 0, urls: 1 })
    expect(stderr.match(/will not remember these runs/g)).toHaveLength(1)
  })

  it('whose journal turns out to be damaged in the middle is set aside, and the run is in the new one', async () => {
    const service = await createCliService()
    await service.run([...RUN, '-n', '5', '--no-wait'])
    const path = join(service.home, 'state', 'journal.db')
    const database = new Database(path)
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    database.close()
    // The first page says that all is well; every other one is noise.
    const bytes = readFileSync(path)
    writeFileSync(
      path,
      Buffer.concat([bytes.subarray(0, 4_096), Buffer.alloc(bytes.length - 4_096, 'noise')]),
    )
    const { code, stdout, stderr } = await service.run([...RUN, '--no-wait'])
    expect(code).toBe(0)
    expect(stderr.match(/is damaged/g)).toHaveLength(1)
    expect(rowsOf(service.home)).toMatchObject([{ id: stdout.trim(), phase: 'going' }])
    expect((await service.run(['wait', '--all'])).code).toBe(0)
  })

  it('whose ledger is damaged loses nothing by it', async () => {
    const service = await createCliService()
    mkdirSync(join(service.home, 'state'), { recursive: true })
    writeFileSync(
      join(service.home, 'state', 'limits.db'),
      'no database at all, but long enough to be read'.repeat(100),
    )
    const { code, stderr } = await service.run(RUN)
    expect({ code, warned: /warning/.test(stderr) }).toEqual({ code: 0, warned: false })
  })
})
