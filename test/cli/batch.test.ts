/** `rushes batch`, carried out against the service: what is made, what is remembered, what is said. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { batchCommandLine } from '../../src/cli/batch/command-line.js'
import { createInterrupts } from '../../src/cli/process/interrupts.js'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { type Administration, type KeyTerms, openAdministration } from '../../src/service/administration.js'
import type { Engine } from '../../src/service/engines/engine.js'
import { type CliService, createCliService, type RunOptions, scripted } from '../support/cli.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { temporaryFolder } from '../support/service.js'

interface Row {
  readonly name: string
  readonly prompt: string
  readonly [field: string]: unknown
}

/** A folder with a manifest of images, and the service that makes them. */
async function createBatch(rows: readonly Row[], options: Parameters<typeof createCliService>[0] = {}) {
  const service = await createCliService(options)
  const folder = temporaryFolder()
  const manifest = join(folder, 'shots.json')
  const write = (next: readonly Row[]) =>
    writeFileSync(manifest, JSON.stringify({ defaults: { kind: 'image' }, runs: next }))
  write(rows)
  const lockPath = join(folder, 'shots.lock.json')
  return {
    service,
    folder,
    manifest,
    write,
    lock: () => (existsSync(lockPath) ? JSON.parse(readFileSync(lockPath, 'utf8')).runs : undefined),
    files: () =>
      readdirSync(folder, { recursive: true })
        .filter((name) => /\.png$/.test(String(name)))
        .sort(),
    posts: () => postsOf(service).length,
    run: (words: readonly string[] = [], runOptions: Omit<RunOptions, 'clock' | 'home'> = {}) =>
      service.run(['batch', manifest, ...words], runOptions),
  }
}

const postsOf = ({ requests }: CliService) => requests.filter(({ method }) => method === 'POST')
const promptOf = (body: Uint8Array | undefined): string =>
  JSON.parse(Buffer.from(body ?? []).toString()).input.prompt
const FOX = { name: 'fox', prompt: 'a fox', output: 'icons/fox.png' }
const HEN = { name: 'hen', prompt: 'a hen' }
const lines = (text: string) => text.split('\n').filter(Boolean)

describe('a batch', () => {
  it('makes what is missing, says its paths, and a second one costs nothing', async () => {
    const batch = await createBatch([FOX, HEN, { name: 'owl', prompt: 'an owl', count: 2 }])
    const { code, stdout, stderr } = await batch.run()
    expect(code).toBe(0)
    expect(
      lines(stdout)
        .map((path) => path.replace(/^.*\//, ''))
        .sort(),
    ).toEqual(['fox.png', 'hen.png', 'owl-2.png', 'owl.png'])
    expect(stderr).toMatch(/^4 runs: 4 created \(\d+ s\)$/m)
    expect(batch.files()).toEqual(['hen.png', 'icons/fox.png', 'owl-2.png', 'owl.png'])
    expect(Object.keys(batch.lock())).toEqual(['fox', 'hen', 'owl', 'owl-2'])
    expect(batch.lock().fox).toMatchObject({
      file: 'icons/fox.png',
      bytes: ONE_PIXEL_PNG.byteLength,
      model: 'rushes/preview-image',
    })
    const again = await batch.run()
    expect(again).toMatchObject({ code: 0, stdout: '' })
    expect(batch.posts()).toBe(4)
    expect(await batch.run(['--check'])).toMatchObject({ code: 0 })
  })

  it('makes what is stale, and nothing else', async () => {
    const batch = await createBatch([FOX, HEN])
    await batch.run()
    batch.write([{ ...FOX, prompt: 'a red fox' }, HEN])
    expect(await batch.run()).toMatchObject({ code: 0 })
    expect(postsOf(batch.service).map(({ body }) => promptOf(body))).toEqual(['a fox', 'a hen', 'a red fox'])
  })

  it('fetches a missing file before anyone pays again', async () => {
    const batch = await createBatch([FOX, HEN])
    await batch.run()
    rmSync(join(batch.folder, 'icons'), { recursive: true })
    const { code, stderr } = await batch.run()
    expect({ code, posts: batch.posts() }).toEqual({ code: 0, posts: 2 })
    expect(stderr).toMatch(/2 runs: 1 downloaded, 1 up to date/)
    expect(batch.files()).toEqual(['hen.png', 'icons/fox.png'])
  })

  it('moves a file to its new name without asking anybody', async () => {
    const batch = await createBatch([FOX])
    await batch.run()
    batch.write([{ ...FOX, output: 'renamed/fox.png' }])
    const before = batch.service.requests.length
    expect(await batch.run([], { env: { RUSHES_API_KEY: '' } })).toMatchObject({ code: 0 })
    expect(batch.service.requests.length).toBe(before)
    expect(batch.files()).toContain('renamed/fox.png')
  })

  it('leaves a file that it does not know, before anything is sent', async () => {
    const batch = await createBatch([FOX, HEN])
    writeFileSync(join(batch.folder, 'hen.png'), 'mine')
    expect(await batch.run()).toMatchObject({ code: 2, stdout: '' })
    expect(batch.posts()).toBe(0)
    expect(await batch.run(['--overwrite'])).toMatchObject({ code: 0 })
    expect(readFileSync(join(batch.folder, 'hen.png'))).toEqual(ONE_PIXEL_PNG)
  })

  it('sends local images, whose content counts', async () => {
    const batch = await createBatch([{ ...FOX, image_urls: ['style.png'] }])
    writeFileSync(join(batch.folder, 'style.png'), ONE_PIXEL_PNG)
    expect((await batch.run()).code).toBe(0)
    expect(Buffer.from(postsOf(batch.service)[0]?.body ?? []).toString()).toContain('data:image/png;base64,')
    writeFileSync(join(batch.folder, 'style.png'), Buffer.concat([ONE_PIXEL_PNG, Buffer.from('x')]))
    expect((await batch.run(['--check'])).code).toBe(10)
  })

  it('does only what is selected, anew when told to, and no more than allowed', async () => {
    const batch = await createBatch([FOX, HEN])
    expect((await batch.run(['--max-runs', '1'])).code).toBe(2)
    expect(batch.posts()).toBe(0)
    await batch.run(['--only', 'hen'])
    expect(batch.files()).toEqual(['hen.png'])
    await batch.run(['--only', 'hen', '--force'])
    expect(postsOf(batch.service).map(({ body }) => promptOf(body))).toEqual(['a hen', 'a hen'])
  })

  it('is one JSON object a row as it ends, and a summary', async () => {
    const batch = await createBatch([FOX, HEN])
    const { code, stdout, stderr } = await batch.run(['--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const objects = lines(stdout).map((line) => JSON.parse(line))
    expect(objects).toHaveLength(3)
    expect(Object.keys(objects[0])).toEqual([
      'name',
      'result',
      'kind',
      'model',
      'run',
      'file',
      'bytes',
      'sha256',
      'content_type',
      'error',
      'blocked_by',
      'line',
    ])
    expect(objects[2]).toEqual({
      summary: {
        total: 2,
        up_to_date: 0,
        created: 2,
        downloaded: 0,
        failed: 0,
        blocked: 0,
        unconfirmed: 0,
        still_running: 0,
        not_started: 0,
        skipped: 0,
        elapsed_ms: expect.any(Number),
        not_waited_for: [],
      },
    })
  })

  it('has at most so many runs under way', async () => {
    const rows = Array.from({ length: 6 }, (_, at) => ({ name: `n${at}`, prompt: `${at}` }))
    const batch = await createBatch(rows)
    let underway = 0
    let most = 0
    const fetch: Fetch = async (request) => {
      const response = await batch.service.counting(request)
      if (request.method === 'POST') most = Math.max(most, ++underway)
      if (request.url.pathname.startsWith('/outputs/')) underway--
      return response
    }
    expect((await batch.run(['--concurrency', '2'], { fetch })).code).toBe(0)
    expect(most).toBeLessThanOrEqual(3)
    expect(batch.posts()).toBe(6)
  })
})

describe('when things go wrong', () => {
  const failing: Engine = {
    async render({ input }) {
      throw new Error(`cannot draw ${input.prompt}`)
    },
  }

  it('an account error costs one request: nothing more is created', async () => {
    const batch = await createBatch([FOX, HEN, { name: 'owl', prompt: 'an owl' }])
    const { fetch, requests } = scripted({
      status: 402,
      body: { error: { code: 'insufficient_balance', message: 'no' } },
    })
    const { code, stderr } = await batch.run([], { fetch })
    expect({ code, sent: requests.length }).toEqual({ code: 5, sent: 1 })
    expect(stderr).toMatch(/3 runs: 1 failed, 2 not started/)
    expect(batch.lock()).toEqual({})
  })

  it('a row that is refused does not keep back the others; --fail-fast does', async () => {
    const batch = await createBatch([HEN, FOX, { name: 'owl', prompt: 'an owl' }])
    const refusing: Fetch = (request) =>
      request.method === 'POST' && promptOf(request.body) === 'a hen'
        ? scripted({ status: 400, body: { error: { code: 'invalid_input', message: 'no hens' } } }).fetch(
            request,
          )
        : batch.service.counting(request)
    const fast = await batch.run(['--fail-fast'], { fetch: refusing })
    expect({ code: fast.code, files: batch.files() }).toEqual({ code: 3, files: [] })
    const { code, stderr } = await batch.run([], { fetch: refusing })
    expect({ code, files: batch.files() }).toEqual({ code: 3, files: ['icons/fox.png', 'owl.png'] })
    expect(stderr).toMatch(/error: hen \(line 1\): .*no hens/)
  })

  it('a run that fails is exit 10, and is made again by the next batch', async () => {
    const batch = await createBatch([FOX], { engine: failing })
    const { code, stderr } = await batch.run()
    expect(code).toBe(10)
    expect(stderr).toMatch(/cannot draw a fox/)
    expect(batch.lock()).toEqual({})
    await batch.run()
    expect(batch.posts()).toBe(2)
  })

  it('a create whose outcome is unknown is not sent again, until it is told to', async () => {
    const batch = await createBatch([FOX, HEN])
    const losing: Fetch = async (request) => {
      if (request.method !== 'POST' || promptOf(request.body) !== 'a fox')
        return batch.service.counting(request)
      batch.service.requests.push(request)
      throw new HttpFailure('read ECONNRESET', { sent: true, code: 'ECONNRESET' })
    }
    expect((await batch.run([], { fetch: losing })).code).toBe(13)
    expect(batch.lock().fox).toMatchObject({
      pending: { state: 'unconfirmed', key: expect.stringMatching(/^~/) },
    })
    const { code, stderr } = await batch.run()
    expect({ code, posts: batch.posts() }).toEqual({ code: 13, posts: 2 })
    expect(stderr).toMatch(/error: fox \(line 1, ~[0-9a-f]+\): The outcome of its last create is unknown/)
    expect(await batch.run(['--resubmit-unconfirmed'])).toMatchObject({ code: 0 })
    expect(batch.posts()).toBe(3)
  })

  it('a batch that was killed between the answer and the lock file finds the run in the journal', async () => {
    const batch = await createBatch([FOX])
    await batch.run()
    const { run, hash, model, kind } = batch.lock().fox
    rmSync(join(batch.folder, 'icons'), { recursive: true })
    const sent_at = new Date(Date.UTC(2026, 0, 1)).toISOString()
    const pending = { hash, model, kind, service: 'http://127.0.0.1:1', state: 'unconfirmed', sent_at }
    writeFileSync(
      join(batch.folder, 'shots.lock.json'),
      JSON.stringify({ version: 1, manifest: 'shots.json', runs: { fox: { pending } } }),
    )
    expect(await batch.run()).toMatchObject({ code: 0 })
    expect({ posts: batch.posts(), run: batch.lock().fox.run }).toEqual({ posts: 1, run })
  })

  it('goes on with a run that was created before, and waits only so long', async () => {
    const batch = await createBatch([FOX], { rendering: false })
    expect((await batch.run(['--timeout', '30s'])).code).toBe(11)
    expect(batch.lock().fox).toMatchObject({
      pending: { state: 'accepted', run: expect.stringMatching(/^run_/) },
    })
    batch.service.service.startRendering()
    expect(await batch.run()).toMatchObject({ code: 0 })
    expect(batch.posts()).toBe(1)
  })

  it('is ended by a signal with its own code; the next one goes on', async () => {
    const batch = await createBatch([FOX, HEN], { rendering: false })
    const interrupts = createInterrupts()
    let looks = 0
    const fetch: Fetch = (request) => {
      if (request.method === 'GET' && ++looks === 3) interrupts.interrupt('SIGINT')
      return batch.service.counting(request)
    }
    const { code, stderr } = await batch.run([], { fetch, interrupts })
    expect(code).toBe(130)
    expect(stderr).toMatch(/Continue without paying twice with `rushes batch \S+shots\.json`\.$/m)
    expect(stderr).toMatch(/2 runs: 2 still running/)
    batch.service.service.startRendering()
    expect(await batch.run()).toMatchObject({ code: 0 })
    expect(batch.posts()).toBe(2)
  })

  it('is exit 9 when the network is gone, and the next one makes the rest', async () => {
    const batch = await createBatch([FOX, HEN])
    const fetch: Fetch = (request) => {
      if (request.method === 'POST' && promptOf(request.body) === 'a hen')
        throw new HttpFailure('the connection was refused', { sent: false, code: 'ECONNREFUSED' })
      return batch.service.counting(request)
    }
    expect((await batch.run([], { fetch })).code).toBe(9)
    expect(Object.keys(batch.lock())).toEqual(['fox'])
    expect(await batch.run()).toMatchObject({ code: 0 })
    expect(batch.posts()).toBe(2)
  })

  it('outlasts a service that fails for a while', async () => {
    const batch = await createBatch([FOX, HEN])
    let looks = 0
    const fetch: Fetch = (request) =>
      request.method === 'GET' && request.url.pathname.startsWith('/api') && ++looks <= 6
        ? scripted({ status: 503 }).fetch(request)
        : batch.service.counting(request)
    expect((await batch.run([], { fetch })).code).toBe(0)
  })
})

describe('in GitHub Actions', () => {
  it('writes the summary of the job, and errors at the lines of the manifest', async () => {
    const batch = await createBatch([FOX, HEN])
    const summary = join(batch.folder, 'summary.md')
    mkdirSync(join(batch.folder, 'icons'))
    const fetch: Fetch = (request) =>
      request.method === 'POST' && promptOf(request.body) === 'a hen'
        ? scripted({
            status: 400,
            body: { error: { code: 'invalid_input', message: '50% no: hens,\n::error::x' } },
          }).fetch(request)
        : batch.service.counting(request)
    const { stderr } = await batch.run([], {
      fetch,
      env: { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: summary },
    })
    const [annotation, ...more] = lines(stderr).filter((line) => line.startsWith('::'))
    expect(more).toEqual([expect.stringMatching(/^::error title=rushes batch%3A exit code 3::Exit code 3: /)])
    expect(annotation).toMatch(/^::error file=.*shots\.json,line=1,title=hen::.*50%25 no: hens,/)
    expect(readFileSync(summary, 'utf8')).toMatch(/2 runs: 1 created, 1 failed\.\n\n\| row \| action \|/)
  })
})

describe('an account that says no in the middle', () => {
  const ROWS = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, prompt: `a ${name}` }))

  /** The service with a key that is made for it; `act` is called as the third create arrives. */
  async function createRefused(
    act: (admin: Administration, key: string) => Promise<unknown>,
    terms: Partial<KeyTerms> = {},
  ) {
    const batch = await createBatch(ROWS)
    const admin = await openAdministration({ ...batch.service, make: false })
    const { apiKey, key } = await admin.createKey('default', { name: 'ci', ...terms })
    let creates = 0
    const fetch: Fetch = async (request) => {
      if (request.method === 'POST' && ++creates === 3) await act(admin, String(key.id))
      return batch.service.counting(request)
    }
    const ran = await batch.run([], { fetch, env: { RUSHES_API_KEY: apiKey } })
    return { batch, ran }
  }

  it.each<
    [string, number, RegExp, Partial<KeyTerms>, (admin: Administration, key: string) => Promise<unknown>]
  >([
    ['a quota that is used up', 5, /quota/, { quota: 2 }, async () => {}],
    ['a spend limit that is reached', 5, /spend limit/, { spendLimit: 2 }, async () => {}],
    ['an empty account', 5, /balance/, {}, (admin) => admin.addCredits('default', -9_998)],
  ])('%s: no further create, and what is in flight is finished', async (_, code, says, terms, act) => {
    const { batch, ran } = await createRefused(act, terms)
    expect(ran.code).toBe(code)
    expect(ran.stderr).toMatch(says)
    expect(ran.stderr).toMatch(/5 runs: 2 created, [1-3] failed(, [1-2] not started)?/)
    expect(batch.files()).toHaveLength(2)
    // Those that were unanswered together with the refused one, and none after it.
    expect(batch.posts()).toBeLessThanOrEqual(5)
    // With the account mended the next batch makes the rest, and pays for nothing twice.
    const admin = await openAdministration({ ...batch.service, make: false })
    await admin.addCredits('default', 100)
    expect((await batch.run()).code).toBe(0)
    expect((await admin.accounts())[0]?.runs).toBe(5)
  })

  it.each<[string, number, RegExp, (admin: Administration, key: string) => Promise<unknown>]>([
    [
      'a key that is disabled',
      4,
      /invalid, disabled or expired/,
      (admin, key) => admin.changeKey(key, { disabled: true }),
    ],
    ['an account that is banned', 5, /banned/, (admin) => admin.setBanned('default', true)],
  ])('%s: nothing can be looked at either, and nothing is lost', async (_, code, says, act) => {
    const { batch, ran } = await createRefused(act)
    expect(ran.code).toBe(code)
    expect(ran.stderr).toMatch(says)
    const admin = await openAdministration({ ...batch.service, make: false })
    await admin.setBanned('default', false)
    expect((await batch.run()).code).toBe(0)
    expect(batch.files()).toHaveLength(5)
    expect((await admin.accounts())[0]?.runs).toBe(5)
  })
})

describe('a replica of the service that is behind', () => {
  it.each(['run', 'batch'])('does not make %s give up a run that it has just paid for', async (command) => {
    const batch = await createBatch([FOX])
    let hidden = 0
    const fetch: Fetch = (request) => {
      if (request.method === 'POST' || request.url.pathname.startsWith('/outputs') || hidden === 3)
        return batch.service.counting(request)
      hidden++
      return scripted({ status: 404, body: '' }).fetch(request)
    }
    const ran =
      command === 'batch'
        ? await batch.run([], { fetch })
        : await batch.service.run(['run', 'image', 'a fox'], { fetch })
    expect(ran).toMatchObject({ code: 0 })
    expect(hidden).toBe(3)
    expect(batch.posts()).toBe(1)
  })
})

describe('what ends the creating of a batch', () => {
  const rows = Array.from({ length: 12 }, (_, at) => ({ name: `row-${at}`, prompt: `number ${at}` }))
  const refusing = (status: number, code: string) =>
    scripted({ status, body: { error: { code, message: 'no' } } })

  it.each([
    ['an outcome that is not known', 500, 'oops', 13, 1],
    ['a model that there is not', 400, 'model_not_found', 3, 1],
    ['another refusal of the service', 418, 'teapot', 3, 1],
    ['but not a refusal of one input', 400, 'invalid_input', 3, 12],
  ])('%s', async (_, status, code, exit, posts) => {
    const batch = await createBatch(rows)
    const { fetch, requests } = refusing(status, code)
    expect((await batch.run([], { fetch })).code).toBe(exit)
    expect(requests).toHaveLength(posts)
  })
})

describe('a time limit', () => {
  it('is the error of the network where the service never answers', async () => {
    const batch = await createBatch([FOX])
    const fetch: Fetch = (request) =>
      request.method === 'POST'
        ? batch.service.counting(request)
        : Promise.reject(new HttpFailure('reset', { sent: true, code: 'ECONNRESET' }))
    const { code, stderr } = await batch.run(['--timeout', '20s'], { fetch })
    expect(code).toBe(9)
    expect(stderr).not.toContain('the run goes on')
  })
})

describe('a signal during the download of a row', () => {
  it('leaves the row unfinished and says how to continue', async () => {
    const batch = await createBatch([FOX])
    const interrupts = createInterrupts()
    const fetch: Fetch = async (request) => {
      if (!request.url.pathname.startsWith('/outputs')) return batch.service.counting(request)
      interrupts.interrupt('SIGINT')
      request.signal?.throwIfAborted()
      throw new Error('the download goes on')
    }
    const { code, stderr } = await batch.run([], { fetch, interrupts })
    expect(code).toBe(130)
    expect(stderr).toContain('rushes batch')
    expect(stderr).toContain('1 run: 1 still running')
    expect(stderr).not.toContain('failed')
    expect(await batch.run()).toMatchObject({ code: 0 })
    expect(batch.posts()).toBe(1)
  })
})

describe('a signal while a create is unanswered', () => {
  it.each([
    ['with a journal', false],
    ['where no journal can be written', true],
  ])('leaves the row unconfirmed, %s', async (_, isWithoutJournal) => {
    const batch = await createBatch([FOX])
    const interrupts = createInterrupts()
    const fetch: Fetch = (request) => {
      interrupts.interrupt('SIGINT')
      interrupts.interrupt('SIGINT')
      return Promise.reject(request.signal?.reason)
    }
    const file = join(batch.folder, 'no-folder')
    writeFileSync(file, '')
    const env: Record<string, string> = isWithoutJournal ? { RUSHES_STATE_DIR: file } : {}
    const { code, stderr } = await batch.run([], { fetch, interrupts, env })
    expect(code).toBe(130)
    expect(stderr).toContain('a run may exist and cost money')
    expect(batch.lock().fox.pending.state).toBe('unconfirmed')
  })
})

describe('a batch whose claim is lost', () => {
  const rows = Array.from({ length: 12 }, (_, at) => ({ name: `row-${at}`, prompt: `number ${at}` }))

  it.each([
    ['removed', undefined, /shots\.lock\.json\.claim was removed/],
    ['taken over by another batch', '{"token":"x"}', /Another batch took over this manifest/],
  ])(
    'because it was %s creates nothing more, and leaves the lock file to the other',
    async (_, text, says) => {
      const batch = await createBatch(rows)
      const claim = join(batch.folder, '.shots.lock.json.claim')
      let creates = 0
      const fetch: Fetch = async (request) => {
        const response = await batch.service.counting(request)
        if (request.method === 'POST' && ++creates === 2) {
          if (text === undefined) rmSync(claim)
          else writeFileSync(claim, text)
        }
        return response
      }
      const { code, stderr } = await batch.run(['--concurrency', '1'], { fetch })
      expect(code).toBe(12)
      expect(stderr).toMatch(says)
      expect(stderr.match(/error:/g)).toHaveLength(1)
      // Those that were unanswered together with the second one.
      expect(batch.posts()).toBeLessThanOrEqual(5)
      // Its answer came later, and the lock file belongs to the other batch by then.
      expect(batch.lock()['row-1'].pending.state).toBe('unconfirmed')
      expect(existsSync(claim)).toBe(text !== undefined)
    },
  )
})

describe('the command that continues a batch', () => {
  const globals = { local: false }
  it.each<[string, Parameters<typeof batchCommandLine>]>([
    ['rushes batch shots.yaml', [globals, { word: 'shots.yaml', flags: {} }]],
    ['rushes batch --local -', [{ local: true }, { word: '-', flags: {} }]],
    [
      "rushes batch --profile 'a b' --base-url https://x.example -- '-shots.yaml'",
      [
        { ...globals, profile: 'a b', baseUrl: 'https://x.example' },
        { word: '-shots.yaml', flags: {} },
      ],
    ],
    [
      "rushes batch --only 'a/*' --only b --max-runs 5 --concurrency 2 --timeout 5m --fail-fast --allow-outside --overwrite 'my shots.yaml'",
      [
        globals,
        {
          word: 'my shots.yaml',
          flags: {
            only: ['a/*', 'b'],
            maxRuns: '5',
            concurrency: '2',
            timeout: '5m',
            failFast: true,
            allowOutside: true,
            overwrite: true,
            force: true,
            resubmitUnconfirmed: true,
          },
        },
      ],
    ],
  ])('%s', (line, [flags, words]) => {
    expect(batchCommandLine(flags, words)).toBe(line)
  })
})

describe('many rows', () => {
  const rows = [{ name: 'shot', prompt: 'a fox', count: 40 }]

  it('are a few lines after Ctrl-C, without a warning of Node', async () => {
    const warnings: string[] = []
    const listen = (warning: Error) => warnings.push(warning.message)
    process.on('warning', listen)
    onTestFinished(() => void process.off('warning', listen))
    const batch = await createBatch(rows, { rendering: false })
    const interrupts = createInterrupts()
    let polls = 0
    const fetch: Fetch = (request) => {
      if (request.method === 'GET' && ++polls === 60) interrupts.interrupt('SIGINT')
      return batch.service.counting(request)
    }
    const { code, stderr } = await batch.run(['--only', 'shot*'], { fetch, interrupts })
    expect(code).toBe(130)
    const said = lines(stderr).filter((line) => !/^shot/.test(line))
    expect(said).toEqual([
      expect.stringMatching(/^40 runs: 40 still running \(/),
      'error: Interrupted. Created runs continue on the service.',
      `  Continue without paying twice with \`rushes batch --only 'shot*' ${batch.manifest}\`.`,
    ])
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings).toEqual([])
  })

  it('with the same error print it once, with the names of the others', async () => {
    const batch = await createBatch(rows)
    const { fetch } = scripted({ status: 400, body: { error: { code: 'invalid_input', message: 'no' } } })
    const { code, stderr } = await batch.run([], { fetch })
    expect(code).toBe(3)
    expect(lines(stderr).filter((line) => line.startsWith('error:'))).toEqual([
      expect.stringMatching(/^error: shot(-\d+)? \(line 1\): /),
      // In the order in which they failed.
      expect.stringMatching(
        /^error: 39 more rows with the same error: (shot(-\d+)?(, )?){10} and 29 more\.$/,
      ),
    ])
    expect(stderr).toMatch(/^40 runs: 40 failed \(/m)
  })
})

describe('a service that answers every create with an error', () => {
  const rows = Array.from({ length: 40 }, (_, at) => ({ name: `row-${at}`, prompt: `number ${at}` }))

  it.each([
    ['500', { status: 500, body: 'oops' }, 13],
    ['400 model_not_found', { status: 400, body: { error: { code: 'model_not_found', message: 'no' } } }, 3],
  ])('%s gets a handful of creates, also when it begins in the middle', async (_, answer, exit) => {
    const batch = await createBatch(rows)
    let creates = 0
    const fetch: Fetch = (request) => {
      if (request.method !== 'POST' || ++creates <= 2) return batch.service.counting(request)
      return scripted(answer).fetch(request)
    }
    const { code, stderr } = await batch.run([], { fetch })
    expect(code).toBe(exit)
    // Two were accepted; four may be unanswered at once.
    expect(creates).toBeLessThanOrEqual(2 + 4)
    expect(stderr).toMatch(/40 runs: 2 created, /)
  })
})
