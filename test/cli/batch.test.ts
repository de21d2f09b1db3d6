/** `rushes batch`, carried out against the service: what is created, what is remembered, what is printed. */
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { expect, it, onTestFinished } from 'vitest'
import { claimBatch } from '../../src/batch/lock/claim.js'
import { type BatchFlags, batchCommandLine } from '../../src/cli/batch/options.js'
import type { ServiceFlags } from '../../src/cli/settings/globals.js'
import type { Fetch, HttpRequest } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { type Administration, openAdministration } from '../../src/service/admin.js'
import { madeOf } from '../batch/folder.js'
import { bodyOf, createFamily, type Row, RUN, SHEET, sha256 } from '../support/family.js'
import {
  LOOPBACK_URL,
  lines,
  objects,
  outputOf,
  scripted,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'

const FOX = { name: 'fox', prompt: 'a fox', output: 'icons/fox.png' }
const HEN = { name: 'hen', prompt: 'a hen' }
const OWL = { name: 'owl', prompt: 'an owl' }

const many = (count: number): readonly Row[] =>
  Array.from({ length: count }, (_, at) => ({ name: `row-${at}`, prompt: `number ${at}` }))
const creates = ({ method, body }: HttpRequest, prompt: string) =>
  method === 'POST' && bodyOf(body).input.prompt === prompt
const refusal = (status: number, code: string, message = 'no') =>
  scripted({ status, body: { error: { code, message } } })

it('a batch creates what is missing, and prints the paths of its files', async () => {
  const batch = await createFamily([FOX, HEN, { ...OWL, count: 2 }])
  const { code, stdout, stderr } = await batch.run()
  expect(code).toBe(0)
  const names = lines(stdout).map((path) => path.replace(/^.*\//, ''))
  expect(names.sort()).toEqual(['fox.png', 'hen.png', 'owl-2.png', 'owl.png'])
  expect(stderr).toMatch(/^4 runs: 4 created \(\d+ s\)\. No estimate: 4 runs without a price$/m)
  expect(batch.pictures()).toEqual(['hen.png', 'icons/fox.png', 'owl-2.png', 'owl.png'])
  expect(Object.keys(batch.lock())).toEqual(['fox', 'hen', 'owl', 'owl-2'])
  expect(batch.lock().fox).toMatchObject({
    file: 'icons/fox.png',
    sha256: sha256(batch.path('icons/fox.png')),
    model: 'rushes/preview-image',
  })
  expect(batch.created()).toHaveLength(4)
})

it('a batch with --json prints an object for each row as it ends, and a summary', async () => {
  const batch = await createFamily([FOX, HEN])
  const { code, stdout, stderr } = await batch.run('--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [first, second, ...last] = objects(stdout)
  expect(Object.keys(first).join(' ')).toBe(
    'name result kind model run file bytes sha256 content_type error blocked_by line',
  )
  expect(Object.keys(second)).toEqual(Object.keys(first))
  const none = {
    up_to_date: 0,
    downloaded: 0,
    moved: 0,
    failed: 0,
    blocked: 0,
    unconfirmed: 0,
    still_running: 0,
  }
  expect(last).toEqual([
    {
      summary: {
        ...none,
        total: 2,
        created: 2,
        not_started: 0,
        skipped: 0,
        elapsed_ms: expect.any(Number),
        estimate: null,
        currency: 'credits',
        without_price: 2,
        estimates: { 'rushes/preview-image': null },
        not_waited_for: [],
      },
    },
  ])
})

it('a batch creates nothing more after a create whose model the service does not have', async () => {
  const batch = await createFamily(many(12))
  const { fetch, requests } = refusal(400, 'model_not_found')
  const { code, stderr } = await batch.run([], { fetch })
  expect({ code, sent: requests.length }).toEqual({ code: 3, sent: 1 })
  expect(stderr).toMatch(/12 runs: 1 failed, 11 not started/)
})

it('an error of one row does not keep back the others; --fail-fast does', async () => {
  const batch = await createFamily([HEN, FOX, OWL])
  const refuse = refusal(400, 'invalid_input', 'no hens')
  const fetch: Fetch = (request) =>
    (creates(request, HEN.prompt) ? refuse.fetch : batch.service.counting)(request)
  const fast = await batch.run('--fail-fast', { fetch })
  expect({ code: fast.code, pictures: batch.pictures() }).toEqual({ code: 3, pictures: [] })
  const { code, stderr } = await batch.run([], { fetch })
  expect({ code, pictures: batch.pictures() }).toEqual({ code: 3, pictures: ['icons/fox.png', 'owl.png'] })
  expect(stderr).toMatch(/error: hen \(line 1\): .*no hens/)
})

it('an error of several rows is printed once, with the names of the others', async () => {
  const batch = await createFamily([{ ...HEN, count: 14 }])
  const { code, stderr } = await batch.run([], refusal(400, 'invalid_input'))
  expect(code).toBe(3)
  expect(lines(stderr).filter((line) => line.startsWith('error:'))).toEqual([
    expect.stringMatching(/^error: hen(-\d+)? \(line 1\): /),
    expect.stringMatching(/^error: 13 more runs: /),
  ])
  // In the order in which they failed.
  expect(stderr).toMatch(/^ {2}Also (hen(-\d+)?(, )?){10} and 3 more\.$/m)
  expect(stderr).toMatch(/^14 runs: 14 failed \(/m)
})

it('a batch whose status requests all fail ends at its time limit with the exit code of the network, not with 11', async () => {
  const batch = await createFamily([FOX])
  expect((await batch.run('--timeout 20s', { faults: ['status:reset'] })).code).toBe(9)
})

it('a create whose outcome is unknown stays unconfirmed beside a run of the same input, and is sent again only with --resubmit-unconfirmed', async () => {
  const batch = await createFamily([{ name: 'two', prompt: 'two', count: 2 }, HEN])
  // The response to the second create is lost.
  expect((await batch.run('--concurrency 1', { faults: ['create:close:1'] })).code).toBe(13)
  batch.created()
  const before = batch.lock()
  const unconfirmed = batch.flights()['two-2']
  expect(unconfirmed).toMatchObject({ phase: 'unconfirmed', key: expect.stringMatching(/^~[0-9a-f]+$/) })
  const { code, stderr } = await batch.run()
  expect({ code, created: batch.created() }).toEqual({ code: 13, created: [HEN.prompt] })
  expect(stderr).toContain(
    `error: two-2 (line 1, ${unconfirmed?.key}): The outcome of its last create is unknown`,
  )
  expect(batch.lock()).toEqual({ ...before, hen: expect.anything() })
  expect(batch.flights()['two-2']).toEqual(unconfirmed)
  expect(batch.pictures()).toEqual(['hen.png', 'two.png'])
  outputOf(await batch.run('--resubmit-unconfirmed'))
  expect(batch.created()).toEqual(['two'])
  expect(batch.lock()['two-2'].run).not.toBe(before.two.run)
})

it('a create whose outcome is unknown takes over no run that another command created from the same input', async () => {
  const batch = await createFamily([FOX])
  const create = async (name: string) => {
    const output = join(temporaryFolder(), name)
    outputOf(await batch.service.run(['run', 'image', FOX.prompt, '-o', output]))
    await batch.service.clock.advance(5_000)
  }
  await create('before.png')
  expect((await batch.run([], { faults: ['create:500'] })).code).toBe(13)
  await create('after.png')
  batch.created()
  expect((await batch.run()).code).toBe(13)
  expect({ created: batch.created(), pictures: batch.pictures() }).toEqual({ created: [], pictures: [] })
  expect(batch.flights().fox?.phase).toBe('unconfirmed')
})

it('a batch sends nothing if the journal cannot be written', async () => {
  const batch = await createFamily([FOX, HEN])
  const file = batch.path('no-folder')
  writeFileSync(file, '')
  const { code, stderr } = await batch.run([], { env: { RUSHES_STATE_DIR: file } })
  expect({ code, created: batch.created() }).toEqual({ code: 2, created: [] })
  expect(stderr).toMatch(/error: .*journal.*Nothing was sent/s)
  expect(batch.lock() ?? {}).toEqual({})
})

it('a mistake that shows only while a batch runs fails its row with exit 10', async () => {
  const batch = await createFamily([FOX, { name: 'pose', prompt: 'a pose', image_urls: ['row:fox#2'] }])
  const { code, stderr } = await batch.run()
  expect(code).toBe(10)
  expect(stderr).toContain('row:fox#2: the run of "fox" has one output')
})

it('a lock file that is a link is written and claimed where the link leads', async () => {
  const batch = await createFamily([FOX])
  const target = join(batch.folder, 'state', 'shots.lock.json')
  mkdirSync(dirname(target))
  writeFileSync(target, '{"version": 2, "runs": {}}')
  symlinkSync('state/shots.lock.json', batch.lockPath)
  const claims: string[] = []
  const onRequest = () =>
    claims.push(...readdirSync(dirname(target)).filter((name) => name.endsWith('.claim')))
  outputOf(await batch.run([], { onRequest }))
  expect(claims).toContain('.shots.lock.json.claim')
  expect(lstatSync(batch.lockPath).isSymbolicLink()).toBe(true)
  expect(JSON.parse(readFileSync(target, 'utf8')).runs).toHaveProperty('fox')
  expect(readdirSync(dirname(target))).toEqual(['shots.lock.json'])
})

it('an output that cannot be written is an error before anything is sent', async () => {
  const batch = await createFamily([HEN, { ...FOX, output: 'file/fox.png' }])
  writeFileSync(batch.path('file'), '')
  const message = usageErrorOf(await batch.run())
  expect(batch.service.requests).toEqual([])
  expect(message).toMatch(/file\/fox\.png \(fox, line 1\): .*file is a file, not a folder/)
  expect(message).toContain('Nothing was sent.')
})

/** Puts a folder in the place of the lock file between these two requests. */
const blocking = (
  { path, lockPath }: Awaited<ReturnType<typeof createFamily>>,
  isFirst: (request: HttpRequest) => boolean,
  isLast: (request: HttpRequest) => boolean,
) => {
  const aside = path('lock.aside')
  return (request: HttpRequest) => {
    if (existsSync(aside) && isLast(request)) {
      rmdirSync(lockPath)
      renameSync(aside, lockPath)
    }
    if (isFirst(request)) {
      renameSync(lockPath, aside)
      mkdirSync(lockPath)
    }
  }
}
const isDownload = ({ url }: HttpRequest) => url.pathname.startsWith('/outputs/')

it('a lock file that cannot be written stops a batch with exit 12 and the reason', async () => {
  const batch = await createFamily([FOX, HEN, OWL])
  let downloads = 0
  const onRequest = blocking(
    batch,
    (request) => isDownload(request) && ++downloads === 1,
    () => false,
  )
  const { code, stderr } = await batch.run('--concurrency 1', { onRequest })
  const created = batch.created()
  expect({ code, isLast: created.includes(OWL.prompt) }).toEqual({ code: 12, isLast: false })
  expect(stderr).toMatch(/created, [12] not started/)
  expect(stderr.match(/^error: Cannot read the lock file .*shots\.lock\.json is a directory/gm)).toHaveLength(
    1,
  )
  rmdirSync(batch.lockPath)
  renameSync(batch.path('lock.aside'), batch.lockPath)
  outputOf(await batch.run())
  expect([...created, ...batch.created()].sort()).toEqual([FOX.prompt, HEN.prompt, OWL.prompt].sort())
})

it('a lock file that can be written again at the last row ends its batch with 0', async () => {
  const batch = await createFamily([FOX])
  const onRequest = blocking(batch, (request) => creates(request, FOX.prompt), isDownload)
  outputOf(await batch.run([], { onRequest }))
  expect(batch.lock()).toMatchObject({ fox: { run: expect.any(String) } })
})

it('a batch stops before its next create when one of its rows is changed in the lock file', async () => {
  const batch = await createFamily([FOX, HEN, OWL])
  const onRequest = (request: HttpRequest) => {
    if (creates(request, FOX.prompt))
      batch.editLock((runs) => {
        runs.owl = { ...madeOf('a'.repeat(64)), run: 'run_other', file: 'other.png' }
      })
  }
  const { code, stderr } = await batch.run('--concurrency 1', { onRequest })
  expect({ code, created: batch.created() }).toEqual({ code: 12, created: [FOX.prompt, HEN.prompt] })
  expect(stderr).toMatch(/shots.lock.json changed during this batch \(owl\). This batch stopped/)
  expect(stderr).toContain('3 runs: 2 created, 1 not started')
  expect(batch.lock()).toMatchObject({ fox: { run: expect.any(String) }, owl: { run: 'run_other' } })
})

it('conflict markers of git in the lock file stop a batch and stay, and the next batch has the run that is paid for', async () => {
  const batch = await createFamily([FOX, HEN])
  let whole = ''
  const onRequest = (request: HttpRequest) => {
    if (creates(request, FOX.prompt)) {
      whole = readFileSync(batch.lockPath, 'utf8')
      writeFileSync(batch.lockPath, `<<<<<<< HEAD\n${whole}`)
    }
  }
  const { code, stderr } = await batch.run('--concurrency 1', { onRequest })
  expect({ code, created: batch.created() }).toEqual({ code: 12, created: [FOX.prompt, HEN.prompt] })
  expect(stderr).toContain('it is not a JSON object. This batch stopped creating runs')
  expect(readFileSync(batch.lockPath, 'utf8')).toMatch(/^<<<<<<</)
  writeFileSync(batch.lockPath, whole)
  outputOf(await batch.run())
  expect(batch.created()).toEqual([])
  expect(batch.pictures()).toEqual(['hen.png', 'icons/fox.png'])
})

it('a signal ends a batch of many rows in a few lines, without a warning of Node, and the next batch continues', async () => {
  const warnings: string[] = []
  const listen = (warning: Error) => warnings.push(warning.message)
  process.on('warning', listen)
  onTestFinished(() => void process.off('warning', listen))
  const batch = await createFamily([{ ...HEN, count: 12 }], { rendering: false })
  const interrupts = createInterrupts()
  let polls = 0
  const onRequest = (request: HttpRequest) => {
    if (request.method === 'GET' && ++polls === 15) interrupts.interrupt('SIGINT')
  }
  const { code, stderr } = await batch.run('--only hen*', { onRequest, interrupts })
  expect(code).toBe(130)
  expect(lines(stderr).filter((line) => !/^hen/.test(line))).toEqual([
    expect.stringMatching(/^12 runs: 12 to create\. /),
    expect.stringMatching(/^12 runs: 12 still running \(/),
    expect.stringMatching(
      /^error: Interrupted\. Still running on the service: hen \(run_\w+\), .* and 2 more\.$/,
    ),
    `  Continue without paying twice with \`rushes batch --only 'hen*' ${batch.manifest}\`.`,
  ])
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
  batch.service.service.startRendering()
  outputOf(await batch.run())
  expect(batch.created()).toHaveLength(12)
})

it.each(['a time limit', 'a signal'])(
  'runs that %s leaves are still running, and have their ids',
  async (what) => {
    const batch = await createFamily([{ ...HEN, count: 2 }], { rendering: false })
    const interrupts = createInterrupts()
    const onRequest = (request: HttpRequest) => {
      if (what === 'a signal' && request.method === 'GET') interrupts.interrupt('SIGINT')
    }
    const report = join(batch.folder, 'report.json')
    const { code, stdout } = await batch.run(`--timeout 5s --json --report ${report}`, {
      onRequest,
      interrupts,
    })
    expect(code).toBe(what === 'a signal' ? 130 : 11)
    const going = { result: 'still_running', run: expect.stringMatching(/^run_/) }
    const summary = { total: 2, failed: 0, still_running: 2, not_started: 0 }
    expect(objects(stdout)).toMatchObject([going, going, { summary }])
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ runs: [going, going], summary })
  },
)

type Act = (admin: Administration, key: string) => Promise<unknown>

it.each<[string, number, RegExp, Act, 'finishes' | 'stops']>([
  ['an empty account', 5, /balance/, (admin) => admin.addCredits('default', -9_998), 'finishes'],
  [
    'a disabled key',
    4,
    /invalid, disabled or expired/,
    (admin, key) => admin.changeKey(key, { disabled: true }),
    'stops',
  ],
])(
  'a batch that %s ends in the middle creates nothing more, and the next batch loses and repeats nothing',
  async (_, exit, says, act, inFlight) => {
    const batch = await createFamily(many(9))
    const admin = await openAdministration({ ...batch.service, make: false })
    const { apiKey, key } = await admin.createKey('default', { name: 'ci' })
    let sent = 0
    const onRequest = async (request: HttpRequest) => {
      if (request.method === 'POST' && ++sent === 3) await act(admin, String(key.id))
    }
    const { code, stderr } = await batch.run([], { onRequest, env: { RUSHES_API_KEY: apiKey } })
    expect(code).toBe(exit)
    expect(stderr).toMatch(says)
    expect(stderr).toMatch(
      /Continue with `rushes batch [^`]+`: (the run is|runs that exist are) not paid again\./,
    )
    // Those that were unanswered together with the refused one, and none after it.
    expect(sent).toBeLessThanOrEqual(6)
    if (inFlight === 'finishes') {
      expect(stderr).toMatch(/9 runs: 2 created, [1-4] failed, [3-6] not started/)
      expect(batch.pictures()).toHaveLength(2)
    }
    await admin.addCredits('default', 100)
    outputOf(await batch.run())
    expect(batch.pictures()).toHaveLength(9)
    expect((await admin.accounts())[0]?.runs).toBe(9)
  },
)

const FLAGS: BatchFlags = {
  ...{ only: ['a/*', 'b'], maxRuns: '5', concurrency: '2', timeout: '5m', failFast: true },
  ...{ allowOutside: true, overwrite: true, force: true, resubmitUnconfirmed: true },
}
it.each<[string, string, BatchFlags, ServiceFlags]>([
  ['rushes batch --local shots.yaml', 'shots.yaml', {}, { local: true }],
  [
    "rushes batch --profile 'a b' --base-url https://x.example ./-shots.yaml",
    '-shots.yaml',
    {},
    { local: false, profile: 'a b', baseUrl: 'https://x.example' },
  ],
  [
    "rushes batch --only 'a/*' --only b --max-runs 5 --concurrency 2 --timeout 5m --fail-fast --allow-outside --overwrite 'my shots.yaml'",
    'my shots.yaml',
    FLAGS,
    { local: false },
  ],
])('a batch is continued by `%s`', (line, source, flags, globals) => {
  expect(batchCommandLine(globals, { source, flags })).toBe(line)
})

/** A batch whose time limit has passed: its run is in the lock file, and goes on. */
async function createPending() {
  const family = await createFamily([SHEET], { rendering: false })
  expect((await family.run('--timeout 30s')).code).toBe(11)
  expect(family.created()).toEqual([SHEET.prompt])
  const run = family.flights().sheet?.id ?? ''
  return { ...family, pending: run, render: () => family.service.service.startRendering() }
}

it('a run in flight is of one batch: while another process holds its manifest, with another journal and for another manifest', async () => {
  const { run, lockPath, created, render, pictures, service, manifest, path } = await createPending()
  const claim = claimBatch(realpathSync(lockPath))
  expect(usageErrorOf(await run())).toContain('Another batch is running on this manifest; nothing was sent.')
  claim.release()
  const elsewhere = await run([], { env: { RUSHES_STATE_DIR: temporaryFolder() } })
  expect({ code: elsewhere.code, created: created() }).toEqual({ code: 13, created: [] })
  mkdirSync(path('other'))
  copyFileSync(manifest, path('other/shots.json'))
  expect((await service.run(`batch ${path('other/shots.json')} --timeout 30s`)).code).toBe(11)
  expect(created()).toEqual([SHEET.prompt])
  render()
  outputOf(await run())
  expect({ created: created(), pictures: pictures() }).toEqual({ created: [], pictures: ['sheet.png'] })
})

it('a batch whose time limit passes before a replica knows the new run does not advise to pay again', async () => {
  const { run, service, flights } = await createFamily([SHEET])
  const { stderr } = await run('--timeout 5s', { faults: ['status:404:run_not_found'] })
  expect(stderr).not.toMatch(/pay again|--force/)
  expect(flights().sheet?.phase).toBe('running')
  expect(outputOf(await service.run('list'))).not.toMatch(/not found/i)
  // The next batch continues with the same run.
  outputOf(await run())
})

it('a batch whose journal cannot be read creates nothing, also where the lock file does not say that a run is in flight', async () => {
  const { run, lockPath, created, service } = await createFamily([SHEET])
  await run('--timeout 5s', { faults: ['status:404:run_not_found'] })
  expect(created()).toHaveLength(1)
  const { working: _, ...lock } = JSON.parse(readFileSync(lockPath, 'utf8'))
  writeFileSync(lockPath, JSON.stringify(lock))
  const database = new Database(join(service.home, 'state', 'journal.db'))
  database.exec('ALTER TABLE files RENAME TO gone')
  const unread = await run()
  expect(unread).toMatchObject({ code: 2, stdout: '' })
  expect(unread.stderr).toContain(
    'The journal could not be read, so the runs in flight are not known. Nothing was sent.',
  )
  database.exec('ALTER TABLE gone RENAME TO files')
  database.close()
  outputOf(await run())
  expect(created()).toEqual([])
})

it('the command that pays again for an output that is gone quotes the name of its row, and selects this row alone', async () => {
  const { run } = await createFamily(['a fox', 'f*', 'fox', '!f{1}'].map((name) => ({ name, prompt: name })))
  const gone = async (only: string) => (await run(['--only', only], { faults: ['output:404'] })).stderr
  expect(await gone('a fox')).toMatch(/pay again: `rushes batch \S+ --only 'a fox' --force`/)
  expect(await gone(String.raw`f\*`)).toContain(String.raw`--only 'f\*' --force`)
  const plan = async (only: string) => outputOf(await run(['--only', only, '--force', '--dry-run']))
  expect(await plan(String.raw`f\*`)).toMatch(/^create\tf\*\t.*\n$/)
  expect(await plan(String.raw`\!f\{1\}`)).toMatch(/^create\t!f\{1\}\t/m)
})

const CHANGED = { ...SHEET, prompt: 'another sheet' }
const leftIn = (stdout: string) => objects(stdout).at(-1).summary.not_waited_for

it('a run that the service does not have is an error with its id and its address, and is created again only with --only and --force', async () => {
  const { run, created, flights, editJournal, render } = await createPending()
  editJournal(`UPDATE runs SET id = 'run_gone'`)
  const gone = await run()
  expect(gone.code).toBe(6)
  expect(gone.stderr).toContain('run_gone')
  expect(gone.stderr).toMatch(/To create it again and pay again: `rushes batch \S+ --only <name> --force`/)
  expect([created(), flights().sheet?.id]).toEqual([[], 'run_gone'])
  // Only both together: a batch that was killed must not pay again for what it has created.
  for (const words of [['--force'], ['--only', 'sheet']]) expect((await run(words)).code).toBe(6)
  expect(created()).toEqual([])
  editJournal(`UPDATE runs SET address = 'https://other.example'`)
  const { code, stderr } = await run()
  expect(code).toBe(11)
  expect(stderr).toContain('Continue there with --base-url https://other.example')
  editJournal('UPDATE runs SET address = ?', LOOPBACK_URL)
  const both = ['--only', 'sheet', '--force']
  const plan = await run([...both, '--dry-run'])
  expect(plan.stdout).toBe('create\tsheet\tsheet.{ext}\tforced\n')
  expect(plan.stderr).toMatch(
    /warning: sheet: run_gone has not been downloaded, and this batch does not wait for it/,
  )
  render()
  const paid = await run(both)
  expect([paid.code, created(), flights()]).toEqual([0, [SHEET.prompt], {}])
  expect(paid.stderr).toContain('To get its result: rushes wait -d run_gone')
})

it('a run whose row was changed before it ended is named in the plan, or the key of its create, and nothing waits for it', async () => {
  const { run, created, write, render, pending, editJournal } = await createPending()
  write([CHANGED])
  editJournal(`UPDATE runs SET phase = 'unconfirmed', key = '~3f2a', id = NULL`)
  const unknown = await run('--dry-run --json')
  expect(leftIn(unknown.stdout)).toEqual([{ name: 'sheet', run: null, key: '~3f2a' }])
  expect(unknown.stderr).toContain('the outcome of an earlier create (~3f2a) is unknown')
  editJournal(`UPDATE runs SET phase = 'going', key = NULL, id = ?`, pending)
  const said = `warning: sheet: ${pending} has not been downloaded, and this batch does not wait for it. To get its result: rushes wait -d ${pending}`
  const left = [{ name: 'sheet', run: pending, key: null }]
  expect((await run('--dry-run -q')).stderr).toContain(said)
  const json = await run('--check --json')
  expect(leftIn(json.stdout)).toEqual(left)
  expect(json.stderr).toContain('"warning"')
  render()
  const { code, stdout, stderr } = await run('--json')
  expect([code, created(), leftIn(stdout)]).toEqual([0, [CHANGED.prompt], left])
  expect(stderr).toContain(pending)
  expect((await run()).stderr).not.toContain('warning')
})

it('a run whose row leaves the manifest before it ended is named, and is used when the row is back', async () => {
  const { run, write, pending, lock, render, created } = await createPending()
  write([{ ...RUN, image_urls: [] }])
  render()
  const { code, stderr } = await run()
  expect(code).toBe(0)
  expect(stderr).toContain(`warning: sheet: ${pending} has not been downloaded`)
  created()
  write([SHEET])
  outputOf(await run())
  expect([created(), lock().sheet.run]).toEqual([[], pending])
})
