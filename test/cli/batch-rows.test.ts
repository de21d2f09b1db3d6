/** `rushes batch` with rows that use other rows, and with runs of several outputs: what is created again, sent, downloaded and replaced. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Fetch, HttpRequest } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { type Engine, OutcomeUnknown } from '../../src/service/engines/engine.js'
import { CLIP, createFamily, FAMILY, imagesSentFor, RUN, SHEET, SIT, sha256 } from '../support/family.js'
import { createInstantEngine, lines, objects, outputOf, scripted, usageErrorOf } from '../support/index.js'
import { administer } from '../support/service.js'

it('rows wait for the outputs of the rows that they use, and get the URLs of these as references', async () => {
  const { run, created, path, lock, engine, service } = await createFamily()
  expect(await run()).toMatchObject({ code: 0, stderr: expect.stringMatching(/^4 runs: 4 created \(/m) })
  expect(imagesSentFor(service, RUN.prompt)).toEqual([
    expect.stringMatching(/^http:\/\/127\.0\.0\.1:1\/outputs\//),
  ])
  // Whether the host still has an output is asked without the key.
  const probe = service.requests.find(({ headers }) => headers.range === 'bytes=0-0') ?? expect.unreachable()
  expect(probe.headers).not.toHaveProperty('authorization')
  const prompts = created()
  expect(prompts[0]).toBe(SHEET.prompt)
  expect(prompts.indexOf(CLIP.prompt)).toBeGreaterThan(prompts.indexOf(RUN.prompt))
  const references = (prompt: string) =>
    engine.jobs.find(({ input }) => input.prompt === prompt)?.images?.map((each) => Buffer.from(each ?? []))
  expect(references(RUN.prompt)).toEqual([readFileSync(path('sheet.png'))])
  expect(references(CLIP.prompt)).toEqual([readFileSync(path('run.png'))])
  expect(lock().run.inputs).toEqual({ 'row:sheet': sha256(path('sheet.png')).slice(0, 8) })
})

it('rows stay up to date when what they use is created again with the same bytes', async () => {
  const { run, created, write } = await createFamily()
  await run()
  created()
  const sheet = { ...SHEET, prompt: `${SHEET.prompt}!` }
  write([CLIP, RUN, SIT, sheet])
  const { code, stdout, stderr } = await run('--json')
  expect({ code, stderr, created: created() }).toEqual({ code: 0, stderr: '', created: [sheet.prompt] })
  expect(objects(stdout)).toMatchObject([
    { name: 'sheet', result: 'created' },
    { summary: { created: 1, up_to_date: 3, not_started: 0 } },
  ])
})

it('--only selects the rows that the selected ones need as well, and --force creates only what was selected', async () => {
  const { run, created } = await createFamily()
  expect((await run('--only run --max-runs 1')).stderr).toContain('would create 2 runs')
  await run('--only run')
  expect(created()).toEqual([SHEET.prompt, RUN.prompt])
  await run('--only clip --force')
  expect(created()).toEqual([CLIP.prompt])
  // What uses the row is not selected.
  await run('--only sheet --force')
  expect(created()).toEqual([SHEET.prompt])
  await run('--force')
  expect(created()).toHaveLength(4)
})

it('a row can use each output of another run as row:, not as its path, and one that the run does not have is an error of this row alone', async () => {
  const second = { ...RUN, image_urls: ['row:sheet#2'] }
  const { run, created, engine, path, folder, lock, write } = await createFamily([SHEET, second], {
    outputs: 2,
  })
  outputOf(await run())
  expect(lock().sheet.outputs).toMatchObject([{ file: 'sheet-2.png', sha256: sha256(path('sheet-2.png')) }])
  expect(engine.jobs.at(-1)?.images?.map((each) => Buffer.from(each ?? []))).toEqual([
    readFileSync(path('sheet-2.png')),
  ])
  created()
  write([SHEET, { ...RUN, image_urls: ['row:sheet#3'] }])
  const message = usageErrorOf(await run())
  expect(message).toMatch(/error: run \(line 1\): row:sheet#3: the run of "sheet" has 2 outputs\./)
  expect(message).toMatch(/2 runs: 1 up to date, 1 blocked/)
  expect((await run('--check')).code).toBe(10)
  const file = `${folder}/./sheet-2.png`
  write([SHEET, { ...RUN, image_urls: [file] }])
  expect(usageErrorOf(await run())).toContain(`"${file}" is an output of another run: write row:sheet#2`)
})

it('a run that its provider may have accepted is not created again, and its row takes the result once it is adopted', async () => {
  const { render } = createInstantEngine()
  const engine: Engine = {
    async render(job) {
      if (job.stored?.handle !== undefined) return await render(job)
      const place = { type: 'videos', origin: 'http://127.0.0.1:1', costs: true }
      await job.save?.({ intent: { id: 'i', sentAtMs: 0, endpoint: 'draw', place } })
      throw new OutcomeUnknown('The answer was lost.')
    },
  }
  const { run, created, service } = await createFamily([SHEET, { ...RUN, prompt: 'it runs' }], { engine })
  const first = await run()
  expect([first.code, created()]).toEqual([10, [SHEET.prompt]])
  expect(first.stderr).toContain('A run may exist at the provider and cost money')
  expect(first.stderr).toContain('To create it again and pay again: ')
  expect([(await run()).code, created()]).toEqual([10, []])
  const [id = ''] = /run_[0-9a-z]{20}/.exec(first.stderr) ?? []
  const admin = await administer(service)
  await admin.adoptRun(id, 'job_1')
  const { code, stdout } = await run()
  expect([code, created()]).toEqual([10, ['it runs']])
  expect(stdout).toMatch(/sheet.png\n$/)
})

it('a batch forgets a run that was canceled, also one of unknown outcome, which cannot be adopted', async () => {
  const { run, lock, created, service } = await createFamily([SHEET])
  const body = { status: 'Canceled', error: { code: 'outcome_unknown' } }
  const canceled: Fetch = async (request) =>
    request.method === 'POST' ? service.fetch(request) : scripted({ status: 200, body }).fetch(request)
  expect((await run([], { fetch: canceled })).code).toBe(10)
  expect(lock()).toEqual({})
  created()
  outputOf(await run())
  expect(created()).toEqual([SHEET.prompt])
})

it('a row that fails is created again by the next batch, and blocks the rows that use it, which cost nothing, and no others', async () => {
  const failing = { ...RUN, prompt: 'FAIL' }
  const { run, created, write, lock } = await createFamily([CLIP, failing, SIT, SHEET])
  const { code, stderr } = await run()
  expect(code).toBe(10)
  expect(stderr).toContain('cannot draw FAIL')
  expect(stderr).toMatch(/not created, because it needs the output of run: clip$/m)
  expect(stderr).toMatch(/^4 runs: 2 created, 1 failed, 1 blocked/m)
  expect(created().sort()).toEqual(['FAIL', SHEET.prompt, SIT.prompt].sort())
  const { stdout } = await run('--json')
  expect([created(), Object.keys(lock())]).toEqual([['FAIL'], ['sheet', 'sit']])
  expect(objects(stdout)).toContainEqual(
    expect.objectContaining({ name: 'clip', result: 'blocked', blocked_by: 'run', error: null, run: null }),
  )
  write(FAMILY)
  expect((await run()).stderr).toMatch(/4 runs: 2 created, 2 up to date/)
})

it('a batch that is interrupted in a download does not say that its run is still running', async () => {
  const { run, service } = await createFamily([SHEET])
  const interrupts = createInterrupts()
  const { stderr } = await run([], {
    interrupts,
    fetch: async (request) => {
      if (!request.url.pathname.includes('/api/')) interrupts.interrupt('SIGINT')
      return await service.counting(request)
    },
  })
  expect(stderr).toMatch(/error: Interrupted\. Succeeded, and not downloaded: sheet \(run_\w+\)\.\n/)
})

it('a row that fails is created again by the next batch also where the journal took the id of its run late', async () => {
  const { run, created, editJournal, service } = await createFamily([
    { ...RUN, prompt: 'FAIL', image_urls: [] },
  ])
  const first = await run([], {
    fetch: async (request) => {
      if (request.method !== 'POST') editJournal('DROP TRIGGER IF EXISTS full')
      const answer = await service.counting(request)
      if (request.method === 'POST')
        editJournal("CREATE TRIGGER full BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'full'); END")
      return answer
    },
  })
  expect(first).toMatchObject({ code: 10, stderr: expect.stringContaining('cannot draw FAIL') })
  expect(created()).toEqual(['FAIL'])
  await run()
  expect(created()).toEqual(['FAIL'])
})

it('a row whose create has an unknown outcome blocks the rows that use it', async () => {
  const { run, created } = await createFamily()
  expect((await run([], { faults: ['create:500'] })).code).toBe(13)
  const plan = await run('--check')
  expect(plan.code).toBe(10)
  expect(plan.stdout).toContain('blocked\trun\trun.{ext}\trow:sheet is unconfirmed\n')
  expect(plan.stdout).toContain('blocked\tclip\tclip.{ext}\trow:run is blocked\n')
  const again = await run()
  expect(again.code).toBe(13)
  expect(again.stderr).toMatch(/4 runs: 3 blocked, 1 unconfirmed/)
  expect(created()).toEqual([])
  outputOf(await run('--resubmit-unconfirmed'))
})

it('an output that is downloaded again with other bytes is refused, and nothing is created from it', async () => {
  const family = await createFamily()
  await family.run()
  family.created()
  rmSync(family.path('sheet.png'))
  const { code, stderr } = await family.run([], { faults: ['output:corrupt'] })
  expect([code, stderr]).toEqual([12, expect.stringMatching(/other bytes than the lock file says/)])
  expect(existsSync(family.path('sheet.png'))).toBe(false)
  outputOf(await family.run())
  expect(family.created()).toEqual([])
})

type Family = Awaited<ReturnType<typeof createFamily>>
/** Writes sheet.png by hand when a run is created. */
const editing =
  ({ path }: Family) =>
  ({ method }: HttpRequest) => {
    if (method === 'POST') writeFileSync(path('sheet.png'), 'by hand')
  }
it('a file that changes while its run renders keeps its changes, with the result beside it, which later batches do not pay for', async () => {
  const family = await createFamily([SHEET])
  await family.run()
  const red = { ...SHEET, prompt: 'a red fox' }
  family.write([red, RUN])
  family.created()
  const { code, stdout, stderr } = await family.run([], { onRequest: editing(family) })
  expect({ code, created: family.created() }).toEqual({ code: 12, created: [red.prompt] })
  expect(readFileSync(family.path('sheet.png'), 'utf8')).toBe('by hand')
  expect(family.lock().sheet).toMatchObject({
    file: 'sheet-2.png',
    sha256: sha256(family.path('sheet-2.png')),
  })
  expect(lines(stdout)).toEqual([expect.stringMatching(/sheet-2\.png$/)])
  expect(stderr).toMatch(/sheet \(line 1\): sheet\.png was kept, because it is not as the lock file says/)
  expect(stderr).toContain('The result is in sheet-2.png.')
  expect(stderr).toContain('it needs the output of sheet: run')

  const again = await family.run()
  expect([again.code, family.created()]).toEqual([2, []])
  expect(again.stderr).toMatch(/sheet\.png .*: not created by this batch/)
  const result = sha256(family.path('sheet-2.png'))
  rmSync(family.path('sheet.png'))
  outputOf(await family.run())
  expect(family.created()).toEqual([RUN.prompt])
  expect([family.pictures(), sha256(family.path('sheet.png'))]).toEqual([['run.png', 'sheet.png'], result])
})

it('a file that changes while its run renders gives way to the result with --overwrite, at once or in the next batch, which pays nothing', async () => {
  const family = await createFamily([SHEET])
  outputOf(await family.run('--overwrite', { onRequest: editing(family) }))
  expect(family.pictures()).toEqual(['sheet.png'])
  expect(sha256(family.path('sheet.png'))).toBe(family.lock().sheet.sha256)
  family.write([{ ...SHEET, prompt: 'a red fox' }])
  await family.run([], { onRequest: editing(family) })
  const result = sha256(family.path('sheet-2.png'))
  family.created()
  outputOf(await family.run('--overwrite'))
  expect([family.created(), family.pictures()]).toEqual([[], ['sheet.png']])
  expect(sha256(family.path('sheet.png'))).toBe(result)
})

it('a result beside a file that has changed takes no name of another file or of another output', async () => {
  const family = await createFamily([SHEET, { ...SHEET, name: 'sheet-2', prompt: 'another' }])
  writeFileSync(family.path('sheet-3.png'), 'mine')
  const { code } = await family.run('--json', { onRequest: editing(family) })
  expect(code).toBe(12)
  expect(family.pictures()).toEqual(['sheet-2.png', 'sheet-3.png', 'sheet-4.png', 'sheet.png'])
  expect([family.lock().sheet.file, family.lock()['sheet-2'].file]).toEqual(['sheet-4.png', 'sheet-2.png'])
  expect(readFileSync(family.path('sheet-3.png'), 'utf8')).toBe('mine')
})

it('further outputs do not take the name of another row, and come back under the same names', async () => {
  const rows = [SHEET, { ...RUN, name: 'sheet-2', image_urls: [] }]
  const { run, pictures, created, path } = await createFamily(rows, { outputs: 2 })
  outputOf(await run())
  expect(created()).toHaveLength(2)
  expect(pictures()).toEqual(['sheet-1-2.png', 'sheet-2-2.png', 'sheet-2.png', 'sheet.png'])
  const sums = pictures().map((name) => sha256(path(name)))
  rmSync(path('sheet-1-2.png'))
  outputOf(await run())
  expect(pictures().map((name) => sha256(path(name)))).toEqual(sums)
  expect(created()).toEqual([])
})

it('further outputs keep their pictures when the first output moves to the name of the second', async () => {
  const { run, write, created, path, lock } = await createFamily([SHEET], { outputs: 2 })
  await run()
  created()
  const sums = ['sheet.png', 'sheet-2.png'].map((name) => sha256(path(name)))
  write([{ ...SHEET, output: 'sheet-2.png' }])
  outputOf(await run())
  expect(created()).toEqual([])
  expect(['sheet-2.png', 'sheet-2-2.png'].map((name) => sha256(path(name)))).toEqual(sums)
  expect(lock().sheet).toMatchObject({ file: 'sheet-2.png', outputs: [{ file: 'sheet-2-2.png' }] })
})

it('a further output is planned and downloaded alone when it is missing, or when it was changed and --overwrite is given', async () => {
  const { run, created, path, service, write } = await createFamily([SHEET], { outputs: 2 })
  await run()
  created()
  const second = sha256(path('sheet-2.png'))
  rmSync(path('sheet-2.png'))
  const check = await run('--check')
  expect([check.code, check.stdout]).toEqual([10, 'download\tsheet\tsheet-2.png\tmissing\n'])
  const [row] = objects((await run('--check --json')).stdout)
  expect(row).toMatchObject({ action: 'download', reason: 'missing', file: 'sheet-2.png' })
  service.requests.length = 0
  expect((await run()).stderr).toMatch(/1 run: 1 downloaded/)
  expect(service.requests.map(({ method, url }) => `${method} ${url.pathname.split('/').at(-1)}`)).toEqual([
    expect.stringMatching(/^GET run_/),
    expect.stringMatching(/^GET 1-image\.png/),
  ])
  expect(sha256(path('sheet-2.png'))).toBe(second)
  writeFileSync(path('sheet-2.png'), 'my own work')
  expect(usageErrorOf(await run())).toContain('sheet-2.png (sheet, line 1): changed since')
  outputOf(await run('--overwrite'))
  expect(sha256(path('sheet-2.png'))).toBe(second)
  // A missing one is downloaded under the new name of its output.
  rmSync(path('sheet-2.png'))
  write([{ ...SHEET, output: 'heroes/one.{ext}' }])
  const renamed = await run()
  expect([renamed.code, renamed.stderr]).toEqual([0, expect.stringMatching(/1 run: 1 downloaded/)])
  expect([sha256(path('heroes/one-2.png')), created()]).toEqual([second, []])
})

it('a foreign file at the path of a further output is kept, and the output moves to its place for free', async () => {
  const { run, created, path, write } = await createFamily([{ ...SHEET, output: 'sheet.png' }], {
    outputs: 2,
  })
  writeFileSync(path('sheet-2.png'), 'my own work')
  const { code, stderr } = await run()
  expect([code, stderr]).toEqual([
    12,
    expect.stringMatching(/run_\w+.*sheet-2\.png was kept.* The result is in sheet-2-2\.png/s),
  ])
  expect(readFileSync(path('sheet-2.png'), 'utf8')).toBe('my own work')
  expect(created()).toHaveLength(1)
  rmSync(path('sheet-2.png'))
  outputOf(await run())
  expect(created()).toEqual([])
  write([{ ...SHEET, output: 'sheet.png', prompt: 'another sheet' }])
  writeFileSync(path('sheet-2.png'), 'my own work')
  usageErrorOf(await run())
  expect(created()).toEqual([])
  outputOf(await run('--overwrite'))
  expect(created()).toHaveLength(1)
})

it('a further output that the next run does not have stays', async () => {
  const { run, write, path, engine } = await createFamily([SHEET], { outputs: 2 })
  await run()
  engine.outputs = 1
  write([{ ...SHEET, prompt: 'another sheet' }])
  outputOf(await run())
  expect(existsSync(path('sheet-2.png'))).toBe(true)
  outputOf(await run('--check'))
})

it('a batch that was killed when the second output alone had its name continues without --overwrite and pays nothing', async () => {
  const { run, created, path, lock, editLock, editJournal } = await createFamily([SHEET], { outputs: 2 })
  await run()
  created()
  const { sheet } = lock()
  const sums = [sheet, ...sheet.outputs].map(({ sha256: sum }) => sum)
  rmSync(path('sheet.png'))
  editJournal(`DELETE FROM files WHERE path LIKE '%/sheet.png'`)
  editJournal(`UPDATE runs SET recorded = 0, phase = 'going', status = 'queued'`)
  editLock((runs) => {
    delete runs.sheet
  })
  const { code, stderr } = await run()
  expect([code, stderr]).toEqual([0, expect.stringMatching(/1 run: 1 downloaded/)])
  expect(['sheet.png', 'sheet-2.png'].map((name) => sha256(path(name)))).toEqual(sums)
  expect(created()).toEqual([])
  outputOf(await run('--check'))
})
