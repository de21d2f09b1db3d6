/** `rushes batch` with rows that use other rows, against the service: what is created again, and what is sent for an output. */
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { type CliService, scripted } from '../support/cli.js'
import {
  CLIP,
  createFamily,
  FAMILY,
  imagesSentFor,
  objects,
  RUN,
  SHEET,
  SIT,
  sha256,
} from '../support/family.js'

describe('rows that use other rows', () => {
  it('are created after them, from their outputs; a second batch costs nothing', async () => {
    const { run, created, path, lock, engine } = await createFamily()
    const first = await run()
    expect(first).toMatchObject({ code: 0 })
    expect(first.stderr).toMatch(/^4 runs: 4 created \(/m)
    const prompts = created()
    expect(prompts[0]).toBe(SHEET.prompt)
    expect(prompts.indexOf(CLIP.prompt)).toBeGreaterThan(prompts.indexOf(RUN.prompt))
    const references = (prompt: string) =>
      engine.jobs
        .find(({ input }) => input.prompt === prompt)
        ?.references.map((each) => Buffer.from(each ?? []))
    expect(references(RUN.prompt)).toEqual([readFileSync(path('sheet.png'))])
    expect(references(CLIP.prompt)).toEqual([readFileSync(path('run.png'))])
    expect(lock().run.inputs['row:sheet']).toBe(sha256(path('sheet.png')).slice(0, 8))
    expect(Object.keys(lock().run.inputs)).toEqual(['image_urls', 'prompt', 'row:sheet'])
    expect(await run()).toMatchObject({ code: 0, stdout: '' })
    expect(created()).toEqual([])
    expect((await run(['--check'])).code).toBe(0)
  })

  it('are created again when one that they use changes, and no others are', async () => {
    const { run, created, write } = await createFamily()
    await run()
    created()
    write([CLIP, { ...RUN, prompt: 'the fox leaps' }, SIT, SHEET])
    expect((await run()).stderr).toMatch(/^4 runs: 2 created, 2 up to date/m)
    expect(created()).toEqual(['the fox leaps', CLIP.prompt])
    write([CLIP, RUN, SIT, { ...SHEET, prompt: 'a bear' }])
    await run()
    expect(created().sort()).toEqual(['a bear', CLIP.prompt, RUN.prompt, SIT.prompt].sort())
    expect((await run(['--check'])).code).toBe(0)
  })

  it('are up to date when what they use is created again with the same bytes', async () => {
    const { run, created, write } = await createFamily()
    await run()
    created()
    write([CLIP, RUN, SIT, { ...SHEET, prompt: `${SHEET.prompt}!` }])
    const plan = await run(['--dry-run'])
    expect(plan.stdout).toContain('create\tclip\tclip.mp4\trow:run changed\n')
    expect(plan.stdout).toContain('create\tsheet\tsheet.png\tprompt changed\n')
    const { code, stdout, stderr } = await run(['--json'])
    expect(code).toBe(0)
    expect(created()).toEqual([`${SHEET.prompt}!`])
    const [row, summary] = objects(stdout)
    expect(row).toMatchObject({ name: 'sheet', result: 'created' })
    expect(summary.summary).toMatchObject({ created: 1, up_to_date: 3, not_started: 0 })
    expect(stderr).toBe('')
  })

  it('are not created again when a row gets another name', async () => {
    const { run, created, write, lock, path } = await createFamily()
    await run()
    created()
    write([
      CLIP,
      { ...RUN, image_urls: ['row:character'] },
      { ...SIT, image_urls: ['row:character'] },
      { ...SHEET, name: 'character', output: 'sheet.png' },
    ])
    const { code, stderr } = await run()
    expect(code).toBe(0)
    expect(stderr).toContain('"sheet" was renamed to "character"')
    expect(created()).toEqual([])
    expect(Object.keys(lock())).toEqual(['character', 'clip', 'run', 'sit'])
    // A file in the place of the row is the same input too.
    copyFileSync(path('sheet.png'), path('reference.png'))
    write([CLIP, { ...RUN, image_urls: ['reference.png'] }, SIT, SHEET])
    expect((await run()).stderr).toMatch(/4 runs: 4 up to date/)
  })

  it('--only selects what they need as well, and --force creates only what was selected', async () => {
    const { run, created } = await createFamily()
    expect((await run(['--only', 'run', '--max-runs', '1'])).stderr).toContain('would create 2 runs')
    await run(['--only', 'run'])
    expect(created()).toEqual([SHEET.prompt, RUN.prompt])
    await run(['--only', 'clip', '--force'])
    expect(created()).toEqual([CLIP.prompt])
    // What uses the row is not selected.
    await run(['--only', 'sheet', '--force'])
    expect(created()).toEqual([SHEET.prompt])
    await run(['--force'])
    expect(created()).toHaveLength(4)
  })

  it('the file of a row that was deleted is downloaded, and the rows that use it are up to date', async () => {
    const { run, created, path } = await createFamily()
    await run()
    rmSync(path('sheet.png'))
    created()
    expect((await run()).stderr).toMatch(/4 runs: 1 downloaded, 3 up to date/)
    expect(created()).toEqual([])
  })

  it('is created from a row whose file is downloaded or moved in the same batch', async () => {
    const { run, created, path, write } = await createFamily([SHEET])
    await run()
    rmSync(path('sheet.png'))
    write([SHEET, RUN])
    created()
    expect((await run()).stderr).toMatch(/2 runs: 1 created, 1 downloaded/)
    expect(created()).toEqual([RUN.prompt])
    write([{ ...SHEET, output: 'moved/sheet.png' }, RUN, SIT])
    expect((await run()).stderr).toMatch(/3 runs: 1 created, 1 downloaded, 1 up to date/)
    expect(created()).toEqual([SIT.prompt])
  })

  it('each run of a row with count can be used', async () => {
    const { run, created, engine, path } = await createFamily([
      { ...SHEET, count: 3 },
      { ...RUN, image_urls: ['row:sheet-3', 'row:sheet'] },
    ])
    expect((await run()).code).toBe(0)
    expect(created()).toHaveLength(4)
    expect(engine.jobs.at(-1)?.references.map((each) => Buffer.from(each ?? []))).toEqual([
      readFileSync(path('sheet-3.png')),
      readFileSync(path('sheet.png')),
    ])
  })

  it('each output of a run can be used', async () => {
    const second = { ...RUN, image_urls: ['row:sheet#2'] }
    const { run, created, engine, path, lock, write, lockPath, editLock } = await createFamily(
      [SHEET, second],
      { outputs: 2 },
    )
    expect((await run()).code).toBe(0)
    expect(lock().sheet.outputs).toMatchObject([
      { run: lock().sheet.run, file: 'sheet-2.png', sha256: sha256(path('sheet-2.png')) },
    ])
    expect(engine.jobs.at(-1)?.references.map((each) => Buffer.from(each ?? []))).toEqual([
      readFileSync(path('sheet-2.png')),
    ])
    created()
    expect((await run()).stderr).toMatch(/2 runs: 2 up to date/)
    // One that the run does not have is an error of the row alone.
    write([SHEET, { ...RUN, image_urls: ['row:sheet#3'] }])
    const { code, stderr } = await run()
    expect(code).toBe(2)
    expect(stderr).toMatch(/error: run \(line 1\): row:sheet#3: the run of "sheet" has 2 outputs\./)
    expect(stderr).toMatch(/2 runs: 1 up to date, 1 blocked/)
    expect((await run(['--check'])).code).toBe(10)
    // An older lock file knows the first output only: deleting its file brings the others back, without paying.
    write([SHEET, second])
    editLock((runs) => {
      for (const row of Object.values(runs)) for (const name of ['inputs', 'outputs']) delete row[name]
    })
    expect((await run()).stderr).toMatch(/delete the file of "sheet" to download its outputs again/)
    rmSync(path('sheet.png'))
    expect((await run()).code).toBe(0)
    expect((await run()).stderr).toMatch(/2 runs: 2 up to date/)
    expect(created()).toEqual([])
    expect(existsSync(lockPath)).toBe(true)
  })
})

describe('a row whose source fails', () => {
  it('is blocked, costs nothing and is named; what does not use it is created', async () => {
    const failing = { ...RUN, prompt: 'FAIL' }
    const { run, created, write } = await createFamily([CLIP, failing, SIT, SHEET])
    const { code, stderr } = await run()
    expect(code).toBe(10)
    expect(stderr).toMatch(/not created, because it needs the output of run: clip$/m)
    expect(stderr).toMatch(/^4 runs: 2 created, 1 failed, 1 blocked/m)
    expect(created().sort()).toEqual(['FAIL', SHEET.prompt, SIT.prompt].sort())
    const { stdout } = await run(['--json'])
    expect(objects(stdout)).toContainEqual(
      expect.objectContaining({ name: 'clip', result: 'blocked', blocked_by: 'run', error: null, run: null }),
    )
    write(FAMILY)
    expect((await run()).stderr).toMatch(/4 runs: 2 created, 2 up to date/)
  })

  it('is blocked through several levels; the exit code is that of the first row', async () => {
    const { run, service } = await createFamily()
    const { fetch } = scripted({
      status: 400,
      body: { error: { code: 'invalid_input', message: 'no foxes' } },
    })
    const { code, stderr } = await run([], {
      fetch: (request) => (request.method === 'POST' ? fetch(request) : service.counting(request)),
    })
    expect(code).toBe(3)
    expect(stderr).toMatch(/not created, because they need the output of sheet: run, sit, clip$/m)
    expect(stderr).toMatch(/^4 runs: 1 failed, 3 blocked/m)
  })

  it('whose create has an unknown outcome blocks until that is known', async () => {
    const { run, created, service } = await createFamily()
    const losing: Fetch = async (request) => {
      if (request.method !== 'POST') return service.counting(request)
      return scripted({ status: 500 }).fetch(request)
    }
    expect((await run([], { fetch: losing })).code).toBe(13)
    const plan = await run(['--check'])
    expect(plan.code).toBe(10)
    expect(plan.stdout).toContain('blocked\trun\trun.{ext}\trow:sheet is unconfirmed\n')
    expect(plan.stdout).toContain('blocked\tclip\tclip.{ext}\trow:run is blocked\n')
    const again = await run()
    expect(again.code).toBe(13)
    expect(again.stderr).toMatch(/4 runs: 3 blocked, 1 unconfirmed/)
    expect(created()).toEqual([])
    expect((await run(['--resubmit-unconfirmed'])).code).toBe(0)
  })

  it('after an error of the account nothing more is created', async () => {
    const { run, service } = await createFamily()
    const refusing = scripted({
      status: 402,
      body: { error: { code: 'insufficient_balance', message: 'no' } },
    })
    let creates = 0
    const fetch: Fetch = (request) => {
      if (request.method === 'POST') creates++
      const isOfRun = request.body !== undefined && Buffer.from(request.body).includes(RUN.prompt)
      return isOfRun ? refusing.fetch(request) : service.counting(request)
    }
    const { code, stderr } = await run([], { fetch })
    expect(code).toBe(5)
    // The other pose may have been on its way; the clip needs the one that was refused.
    expect(stderr).toMatch(
      /4 runs: (2 created, 1 failed, 1 blocked|1 created, 1 failed, 1 blocked, 1 not started)/,
    )
    expect(creates).toBeLessThanOrEqual(3)
    expect((await run()).code).toBe(0)
  })
})

describe('a batch that stopped', () => {
  it('by its time limit continues with the run, and then with the rows that need it', async () => {
    const { run, created, service } = await createFamily(FAMILY, { rendering: false })
    const first = await run(['--timeout', '30s'])
    expect(first.code).toBe(11)
    expect(first.stderr).toMatch(/4 runs: 1 failed, 3 blocked/)
    service.service.startRendering()
    expect((await run(['--dry-run'])).stdout).toContain('create\trun\trun.{ext}\tmissing\n')
    expect((await run()).stderr).toMatch(/4 runs: 3 created, 1 downloaded/)
    expect(created().sort()).toEqual(FAMILY.map(({ prompt }) => prompt).sort())
  })

  it('between the answer and the lock file finds the run in the journal, and creates what needs it', async () => {
    const { run, created, lock, editLock, path } = await createFamily([SHEET])
    await run()
    const { hash, model, kind } = lock().sheet
    rmSync(path('sheet.png'))
    editLock((runs) => {
      const pending = { hash, model, kind, state: 'unconfirmed', sent_at: '2026-01-01T00:00:00Z' }
      runs.sheet = { pending: { ...pending, service: 'http://127.0.0.1:1' } }
    })
    created()
    writeFileSync(path('shots.json'), JSON.stringify({ defaults: { kind: 'image' }, runs: FAMILY }))
    expect((await run(['--max-runs', '2'])).stderr).toContain('would create 3 runs')
    expect(await run()).toMatchObject({ code: 0 })
    expect(created()).toHaveLength(3)
  })
})

describe('what is sent for an output', () => {
  it('is its URL while the service has it: nothing is uploaded', async () => {
    const { run, service, write } = await createFamily([SHEET, RUN])
    await run()
    expect(imagesSentFor(service, RUN.prompt)).toEqual([
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:1\/outputs\//),
    ])
    write([SHEET, RUN, SIT])
    service.requests.length = 0
    await run()
    expect(imagesSentFor(service, SIT.prompt)).toEqual([expect.stringMatching(/^http:/)])
    const probe = service.requests.find(({ headers }) => headers.range !== undefined)
    expect(probe?.headers).toMatchObject({ range: 'bytes=0-0' })
    expect(probe?.headers).not.toHaveProperty('authorization')
  })

  it.each<[string, (service: CliService) => Fetch]>([
    [
      'the run is not known any more',
      ({ counting }) =>
        (request) =>
          request.method === 'GET' && request.url.pathname.includes('/runs/')
            ? scripted({ status: 404, body: { error: { code: 'run_not_found', message: 'gone' } } }).fetch(
                request,
              )
            : counting(request),
    ],
    [
      'its file has gone',
      ({ counting }) =>
        (request) =>
          request.url.pathname.startsWith('/outputs')
            ? scripted({ status: 404 }).fetch(request)
            : counting(request),
    ],
  ])('is a data: URL where %s', async (_, fetchOf) => {
    const { run, service, write, path } = await createFamily([SHEET])
    await run()
    write([SHEET, RUN])
    service.requests.length = 0
    const fetch = fetchOf(service)
    let isCreated = false
    await run([], {
      fetch: (request) => {
        isCreated ||= request.method === 'POST'
        // Afterwards all is as before, so that the row can be followed.
        return isCreated ? service.counting(request) : fetch(request)
      },
    })
    expect(imagesSentFor(service, RUN.prompt)).toEqual([
      `data:image/png;base64,${readFileSync(path('sheet.png')).toString('base64')}`,
    ])
  })

  it('is a data: URL at another service, which is not asked for the run', async () => {
    const { run, service, write, editLock, lock } = await createFamily([SHEET])
    await run()
    editLock((runs) => {
      if (runs.sheet !== undefined) runs.sheet.service = 'https://elsewhere.example'
    })
    write([SHEET, RUN])
    service.requests.length = 0
    expect((await run()).code).toBe(0)
    expect(imagesSentFor(service, RUN.prompt)).toEqual([expect.stringMatching(/^data:image\/png;base64,/)])
    const asked = service.requests.map(({ url }) => url.pathname)
    expect(asked.filter((path) => path.includes(lock().sheet.run))).toEqual([])
    expect(service.requests.filter(({ headers }) => headers.range !== undefined)).toEqual([])
  })

  it('is a data: URL once the URL expires in the middle of the batch', async () => {
    const { run, service } = await createFamily([SHEET, RUN, SIT])
    let creates = 0
    const fetch: Fetch = (request) => {
      if (request.method === 'POST') creates++
      const isSheet = creates >= 2 && request.headers.range !== undefined
      return isSheet ? scripted({ status: 403 }).fetch(request) : service.counting(request)
    }
    expect((await run(['--concurrency', '1'], { fetch })).code).toBe(0)
    const sent = [RUN, SIT].flatMap(({ prompt }) => imagesSentFor(service, prompt))
    expect(sent.map((each) => each.slice(0, 5)).sort()).toEqual(['data:', 'http:'])
    expect((await run()).stderr).toMatch(/3 runs: 3 up to date/)
  })

  it('is an error of the row where neither the service nor the disk has it', async () => {
    const { run, service, write, path, lock } = await createFamily(
      [SHEET, { ...RUN, image_urls: ['row:sheet#2'] }],
      {
        outputs: 2,
      },
    )
    await run()
    expect(lock().sheet.outputs).toHaveLength(1)
    write([SHEET, { ...SIT, image_urls: ['row:sheet#2'] }])
    service.requests.length = 0
    const { code, stderr } = await run([], {
      fetch(request) {
        if (!request.url.pathname.startsWith('/outputs')) return service.counting(request)
        // After the plan, and before it is sent.
        if (existsSync(path('sheet-2.png'))) renameSync(path('sheet-2.png'), path('elsewhere.png'))
        return scripted({ status: 404 }).fetch(request)
      },
    })
    expect(code).toBe(2)
    expect(stderr).toMatch(
      /error: sit \(line 1\): row:sheet#2: the service does not have this output any more, and sheet-2\.png: no such file\./,
    )
    expect(stderr).toContain('Create it again with --only sheet --force.')
    expect(service.requests.filter(({ method }) => method === 'POST')).toEqual([])
  })
})

describe('an older lock file', () => {
  it('stays valid: nothing is created again, and a change says "input"', async () => {
    const { run, created, editLock, write } = await createFamily()
    await run()
    editLock((runs) => {
      for (const row of Object.values(runs)) delete row.inputs
    })
    created()
    expect((await run()).stderr).toMatch(/4 runs: 4 up to date/)
    expect(created()).toEqual([])
    write([CLIP, RUN, { ...SIT, prompt: 'the fox sleeps' }, SHEET])
    expect((await run(['--dry-run'])).stdout).toContain('create\tsit\tsit.png\tinput changed\n')
  })
})

describe('the plan', () => {
  it('is a tree on a terminal, with the reason for each row', async () => {
    const { run, write } = await createFamily([
      SHEET,
      RUN,
      CLIP,
      SIT,
      { name: 'both', prompt: 'two foxes', image_urls: ['row:run', 'row:sit'] },
      { name: 'tree', prompt: 'a tree' },
    ])
    const first = await run(['--dry-run'], { tty: { stdout: true }, columns: 120 })
    expect(first.stdout).toMatchInlineSnapshot(`
      "create  sheet       sheet.{ext}  never created
      create  ├─ run      run.{ext}    never created
      create  │  ├─ clip  clip.{ext}   never created
      create  │  └─ both  both.{ext}   never created; also uses row:sit
      create  └─ sit      sit.{ext}    never created
      create  tree        tree.{ext}   never created
      "
    `)
    await run()
    write([
      { ...SHEET, quality: 'high' },
      RUN,
      CLIP,
      { ...SIT, prompt: 'it sits' },
      { name: 'both', prompt: 'two foxes', image_urls: ['row:run', 'row:sit'] },
      { name: 'tree', prompt: 'a tree' },
    ])
    const second = await run(['--dry-run'], { tty: { stdout: true }, columns: 120 })
    expect(second.stdout).toMatchInlineSnapshot(`
      "create      sheet       sheet.png  quality changed
      create      ├─ run      run.png    row:sheet changed
      create      │  ├─ clip  clip.mp4   row:run changed
      create      │  └─ both  both.png   row:run, row:sit changed; also uses row:sit
      create      └─ sit      sit.png    prompt, row:sheet changed
      up to date  tree        tree.png
      "
    `)
    expect(second.stderr).toMatchInlineSnapshot(`
      "to create: 4 with rushes/preview-image, 1 with rushes/preview-video
      6 runs: 1 up to date, 5 to create; at least 10 requests
      "
    `)
  })

  it('has the sources and the reason of each row as JSON, and the runs of each model', async () => {
    const { run } = await createFamily()
    const plan = objects((await run(['--dry-run', '--json'])).stdout)
    expect(plan[0]).toMatchObject({ name: 'clip', uses: ['run'], hash: null, reason: 'missing' })
    expect(plan.at(-1).summary).toMatchObject({
      create: 4,
      blocked: 0,
      models: { 'rushes/preview-image': 3, 'rushes/preview-video': 1 },
    })
  })

  it('says when a file, the model or several inputs changed', async () => {
    const { run, write, path } = await createFamily([SHEET, RUN])
    await run()
    rmSync(path('sheet.png'))
    write([SHEET, { ...RUN, prompt: 'x', quality: 'high', model: 'acme/other', kind: 'image' }])
    const { stdout } = await run(['--dry-run'])
    expect(stdout).toContain('download\tsheet\tsheet.png\tmissing\n')
    expect(stdout).toContain('create\trun\trun.png\tmodel, prompt, quality changed\n')
  })

  it('expects the time of the longest chain', async () => {
    const family = FAMILY.map((row) => ({ ...row, kind: 'image' }))
    const { run, write } = await createFamily(family)
    await run()
    write(family.map((row) => ({ ...row, prompt: `${row.prompt}?` })))
    const summary = objects((await run(['--dry-run', '--json'])).stdout).at(-1).summary
    write([{ ...SHEET, prompt: 'another' }])
    const one = objects((await run(['--dry-run', '--json'])).stdout).at(-1).summary
    expect(summary.expected_ms).toBeGreaterThanOrEqual(2 * one.expected_ms)
  })
})

describe('files that are put in place', () => {
  it('a row with another name keeps the extension of its file, and is copied', async () => {
    const family = await createFamily([SHEET])
    await family.run()
    const sum = sha256(family.path('sheet.png'))
    family.created()
    family.write([{ ...SHEET, name: 'hero' }])
    expect((await family.run()).code).toBe(0)
    expect([sha256(family.path('hero.png')), family.created()]).toEqual([sum, []])
    expect(family.lock().hero.file).toBe('hero.png')
    expect((await family.run(['--check'])).code).toBe(0)
  })

  it('an output that is downloaded again with other bytes is refused, and nothing is created from it', async () => {
    const family = await createFamily()
    await family.run()
    family.created()
    rmSync(family.path('sheet.png'))
    const corrupt: Fetch = async (request) => {
      const answer = await family.service.counting(request)
      if (!request.url.pathname.startsWith('/outputs/')) return answer
      async function* changed() {
        for await (const chunk of answer.body) yield Buffer.from(chunk).fill(0x20, 100)
      }
      return { ...answer, body: changed() }
    }
    const { code, stderr } = await family.run([], { fetch: corrupt })
    expect([code, stderr]).toEqual([12, expect.stringMatching(/other bytes than the lock file says/)])
    expect(existsSync(family.path('sheet.png'))).toBe(false)
    expect((await family.run()).code).toBe(0)
    expect(family.created()).toEqual([])
    expect((await family.run(['--check'])).code).toBe(0)
  })

  it('a report replaces a report, and no other file', async () => {
    const family = await createFamily([SHEET])
    const report = family.path('report.jsonl')
    for (const code of [0, 0]) expect((await family.run(['--report', report])).code).toBe(code)
    for (const name of ['sheet.png', 'mine.txt']) {
      if (name === 'mine.txt') writeFileSync(family.path(name), 'mine')
      const before = sha256(family.path(name))
      expect((await family.run(['--report', family.path(name)])).code).toBe(2)
      expect(sha256(family.path(name))).toBe(before)
    }
  })
})
