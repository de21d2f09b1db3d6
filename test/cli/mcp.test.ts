/** `rushes mcp` in process: the SDK's client, the real service and the journal, on a manual clock. */
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { raceAbort } from '../../src/host/abort.js'
import type { Fetch } from '../../src/host/http.js'
import type { Engine } from '../../src/service/engines/engine.js'
import { sha256 } from '../support/family.js'
import { withFaults } from '../support/faults.js'
import {
  type CliService,
  createCliService,
  createCommandedEngine,
  createGate,
  createInstantEngine,
  fillJournal,
  ONE_PIXEL_PNG,
  outputOf,
  runCli,
  SET,
  temporaryFolder,
  until,
  usageErrorOf,
} from '../support/index.js'
import { type McpOptions, type McpProcess, openMcp } from '../support/mcp.js'

/** Until that number of creates was sent. No time passes: what is loaded first takes real time. */
const untilCreated = ({ clock, creates }: CliService, number = 1) =>
  until(`${number} creates`, async () => {
    await clock.advance(0)
    return creates().length >= number
  })

const open = async (options: McpOptions = {}) => {
  const service = await createCliService()
  return { service, mcp: await openMcp(service, options) }
}

/** Runs end when `engine.finish()` or `engine.fail()` says so. */
async function openCommanded() {
  const engine = createCommandedEngine()
  const service = await createCliService({ engine })
  return { engine, service, mcp: await openMcp(service) }
}

/** Holds back the answer to every create until `release` is called. */
function slowCreates(fetch: Fetch) {
  const gate = createGate()
  const slow: Fetch = async (request) => {
    const answer = await fetch(request)
    if (request.method === 'POST') await raceAbort(gate.after, request.signal)
    return answer
  }
  return { slow, release: gate.open }
}

/** No create is answered before `release` is called. */
async function openSlow(engine: Engine = createInstantEngine(), options: McpOptions = {}) {
  const service = await createCliService({ engine })
  const { slow, release } = slowCreates(service.counting)
  return { service, release, mcp: await openMcp(service, { ...options, fetch: slow }) }
}

/** A call that `cancel` ends. */
function cancellable(mcp: McpProcess, tool: string, args: Readonly<Record<string, unknown>>) {
  const controller = new AbortController()
  const failed = mcp.begin(tool, args, { signal: controller.signal }).catch((error: Error) => error.message)
  return { failed, cancel: () => controller.abort('stop') }
}

const MANIFEST =
  'runs:\n  - { name: a, kind: image, prompt: a fox, output: out/a.png }\n  - { name: b, kind: image, prompt: a bear, output: out/b.png }\n'
/** Into the folder of the server. */
const write = (mcp: McpProcess, name: string, content: string | Buffer) =>
  writeFileSync(join(mcp.folder, name), content)

it('the list of tools names each tool, what it costs, and truthful hints', async () => {
  const { mcp } = await open()
  const { tools } = await mcp.client.listTools()
  expect(
    tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint, annotations?.idempotentHint]),
  ).toEqual([
    ['list_models', true, true],
    ['create_video', false, false],
    ['create_image', false, false],
    ['create_model_run', false, false],
    ['wait_run', false, true],
    ['cancel_run', false, true],
    ['list_runs', true, true],
    ['show_run', true, true],
    ['plan_batch', true, true],
    ['run_batch', false, false],
  ])
  for (const { name, description = '', annotations } of tools) {
    const pays = name.startsWith('create_') || name === 'run_batch'
    expect(description.includes('COSTS MONEY'), name).toBe(pays)
    expect(/\bFree\b/.test(description), name).toBe(!pays)
    if (pays) expect(description).toContain('At most 20 runs per session')
    // A file can be replaced only where a call may say so.
    expect(annotations?.destructiveHint, name).toBe(annotations?.readOnlyHint === false)
  }
  // It is part of an agent's context.
  expect(JSON.stringify(tools).length).toBeLessThan(24_000)
})

it('a create waits, saves the output and returns path, link and the small picture; show_run has it, and other creates can use it', async () => {
  const { service, mcp } = await open()
  const { text, content, isError, runs } = await mcp.call('create_image', {
    prompt: '-',
    output: 'pics/fox.png',
    aspect_ratio: '16:9',
    request_id: 'fox',
  })
  const path = join(mcp.folder, 'pics/fox.png')
  expect(isError).toBe(false)
  expect(JSON.parse(text)).toMatchObject({ request_id: 'fox', runs: [{ files: [{ path }] }] })
  expect(readFileSync(path)).toEqual(ONE_PIXEL_PNG)
  expect(content.slice(1)).toEqual([
    {
      type: 'resource_link',
      uri: pathToFileURL(path).href,
      name: 'fox.png',
      mimeType: 'image/png',
      size: 70,
    },
    { type: 'image', data: ONE_PIXEL_PNG.toString('base64'), mimeType: 'image/png' },
  ])
  expect(runs).toMatchObject([{ status: 'succeeded', error: null, files: [{ path }] }])
  const [{ id, output }] = runs
  // A prompt is text, whatever it looks like.
  const input = { prompt: '-', aspect_ratio: '16:9' }
  expect(service.creates()).toEqual([{ model: 'rushes/preview-image', input }])
  const shown = await mcp.call('show_run', { id })
  expect(shown.structured.run).toMatchObject({ input, files: [{ path }] })
  // It can be used by another create, and so can a file of the folder.
  const image_urls = [`run:${id}`, 'pics/fox.png']
  expect((await mcp.call('create_video', { prompt: 'it runs', image_urls })).isError).toBe(false)
  expect(service.creates()[1]?.input.image_urls).toEqual([
    output.urls[0],
    `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`,
  ])
})

it('a create fails as a run fails, with the shape of --json', async () => {
  const service = await createCliService({
    engine: { render: async () => Promise.reject(new Error('no\u001b[31m ink')) },
  })
  const { isError, text, error } = await (await openMcp(service)).call('create_image', {
    prompt: 'a fox',
  })
  expect(isError).toBe(true)
  expect(error).toMatchObject({ code: 'run_failed', exit_code: 10, http_status: null })
  expect(error.run_id).toMatch(/^run_/)
  expect(text).not.toContain('\u001b')
  expect(JSON.parse(text.split('\n')[0] ?? '')).toEqual({ error: error })
})

it('a create fails with all that is wrong before anything is sent', async () => {
  const { service, mcp } = await open()
  symlinkSync(temporaryFolder(), join(mcp.folder, 'link'))
  write(mcp, 'there.png', 'mine')
  // Names and types of arguments: test/cli/mcp/definitions.test.ts.
  const refused: readonly [args: object, message: string][] = [
    [{}, "create_image must have required property 'prompt'."],
    [{ prompt: 'x', aspect_ratio: '16:10' }, 'aspect_ratio must be equal to one of the allowed values: 1:1'],
    [{ prompt: ' ' }, 'The prompt is empty.'],
    [{ prompt: 'x', image_urls: ['-'] }, 'image_urls has an empty entry.'],
    [{ prompt: 'x', image_urls: ['nofile.png'] }, 'nofile.png: no such file.'],
    [{ prompt: 'x', image_urls: ['../a.png'] }, 'image_urls: ../a.png is outside'],
    [{ prompt: 'x', output: '../a.png' }, 'output: ../a.png is outside'],
    [{ prompt: 'x', output: '/etc/cron.d/x' }, 'output: /etc/cron.d/x is outside'],
    [{ prompt: 'x', output: 'link/a.png' }, 'output: link/a.png is outside'],
    [{ prompt: 'x', output: 'link' }, 'output: link is outside'],
    [{ prompt: 'x', output: '{kind}/a.png' }, 'has a placeholder in the name of a folder'],
    [{ prompt: 'x', output: 'there.png' }, 'there.png already exists.'],
    [{ prompt: 'x', model: 'nonsense' }, '"nonsense" is not a valid model identifier.'],
    [{ prompt: 'x', image_urls: ['a\0b'] }, 'contains a null character'],
    [{ prompt: 'x', output: 'a\0b' }, 'contains a null character'],
  ]
  for (const [args, message] of refused) {
    const { isError, error } = await mcp.call('create_image', { ...args })
    expect({ isError, ...error }, JSON.stringify(args)).toMatchObject({
      isError: true,
      code: 'usage',
      exit_code: 2,
      message: expect.stringContaining(message),
    })
  }
  expect(service.requests).toEqual([])
  expect(readFileSync(join(mcp.folder, 'there.png'), 'utf8')).toBe('mine')
})

it('a create replaces a file where it is allowed', async () => {
  const { mcp } = await open()
  const path = join(mcp.folder, 'fox.png')
  writeFileSync(path, 'old')
  const { run } = await mcp.call('create_image', { prompt: 'a fox', output: 'fox.png', overwrite: true })
  expect(run.files[0].path).toBe(path)
  expect(readFileSync(path)).toEqual(ONE_PIXEL_PNG)
})

it('without a journal, nothing is created, because a repeated create could not be recognized; once it can be opened, it is', async () => {
  const service = await createCliService()
  writeFileSync(join(service.home, 'file'), '')
  const mcp = await openMcp(service, { env: { RUSHES_STATE_DIR: join(service.home, 'file', 'state') } })
  const { error } = await mcp.call('create_image', { prompt: 'a fox' })
  expect(error.message).toMatch(/^Cannot use the journal/)
  expect(service.requests).toEqual([])
  rmSync(join(service.home, 'file'))
  const later = await mcp.call('create_image', { prompt: 'a fox' })
  expect(later.runs).toMatchObject([{ status: 'succeeded' }])
  expect((await mcp.call('list_runs')).runs).toHaveLength(1)
})

it('a session whose journal cannot be written for a while creates nothing meanwhile, and pays once for each request_id', async () => {
  const { engine, service, mcp } = await openCommanded()
  const create = (request_id: string) =>
    mcp.call('create_image', { prompt: request_id, request_id, wait: false })
  const idOf = ({ run }: Awaited<ReturnType<typeof create>>) => run.id
  const before = idOf(await create('before'))
  const repair = fillJournal(join(service.home, 'state', 'journal.db'))
  // Its end cannot be written now.
  engine.finish()
  await mcp.call('wait_run', { ids: [before] })
  for (const _again of [1, 2]) {
    const { isError, error } = await create('during')
    expect(isError).toBe(true)
    expect(error).toMatchObject({ code: 'usage', exit_code: 2 })
    expect(error.message).toMatch(/^Cannot use the journal/)
  }
  expect(service.creates()).toHaveLength(1)
  repair()
  const during = idOf(await create('during'))
  expect(idOf(await create('during'))).toBe(during)
  engine.finish()
  await mcp.call('wait_run', { ids: [during] })
  expect(idOf(await create('before'))).toBe(before)
  expect(service.creates()).toHaveLength(2)
  expect(service.rows()).toMatchObject([
    { id: during, phase: 'succeeded', requestId: 'during' },
    { id: before, phase: 'succeeded', requestId: 'before' },
  ])
  expect(mcp.stderr().match(/will not be remembered/g)).toHaveLength(1)
})

it('a journal that cannot take the id of a paid run gives the run to the next call with its request_id', async () => {
  const service = await createCliService()
  let repair: (() => void) | undefined
  const mcp = await openMcp(service, {
    async fetch(request) {
      const answer = await service.counting(request)
      if (request.method === 'POST') repair = fillJournal(join(service.home, 'state', 'journal.db'))
      return answer
    },
  })
  const create = () => mcp.call('create_image', { prompt: 'a fox', request_id: 'fox' })
  const [{ id }] = (await create()).runs
  expect((await create()).error.message).toMatch(/^Cannot use the journal.* Nothing was sent\.$/)
  repair?.()
  expect((await create()).runs).toMatchObject([{ id, status: 'succeeded' }])
  expect(service.creates()).toHaveLength(1)
})

it('a create that takes more than 45 s returns the id, goes on, and wait_run delivers to its output', async () => {
  const { engine, service, mcp } = await openCommanded()
  const beganAtMs = service.clock.monotonic()
  const first = await mcp.call('create_image', { prompt: 'a fox', output: 'fox.png' })
  expect(service.clock.monotonic() - beganAtMs).toBeGreaterThanOrEqual(45_000)
  expect(service.clock.monotonic() - beganAtMs).toBeLessThan(47_000)
  const { id } = first.run
  expect(first.isError).toBe(false)
  expect(first.text.split('\n')[0]).toBe(
    `${id} is still running (processing). Call wait_run with {"ids":["${id}"]} to wait up to 45 s more. Waiting is free. Do not create it again.`,
  )
  const waiting = mcp.begin('wait_run', { ids: [id] })
  engine.finish()
  const second = await service.clock.runUntil(waiting)
  expect(second.run.files[0].path).toBe(join(mcp.folder, 'fox.png'))
  // The work of the create continued: it is not paid, asked for or saved twice.
  expect(service.creates()).toHaveLength(1)
  // What is saved is saved again, also to another path.
  for (const output of ['fox.png', 'copy.png'])
    expect((await mcp.call('wait_run', { ids: [id], output })).isError).toBe(false)
  expect(readdirSync(mcp.folder).sort()).toEqual(['copy.png', 'fox.png'])
})

it('after 45 s, wait_run says that outputs are still downloading, and waits for them in the next call', async () => {
  const service = await createCliService()
  const fetch = withFaults(service.counting, ['output:hang:20:1'], service.clock)
  const mcp = await openMcp(service, { fetch })
  const created = await mcp.call('create_image', { prompt: 'a fox', output: 'fox.png', wait: false })
  const { id } = created.run
  const late = await mcp.call('wait_run', { ids: [id] })
  expect(late.structured.next).toEqual([
    `${id} succeeded, and its outputs are still downloading, 20 B of 70 B; call wait_run again with {"ids":["${id}"]} to wait up to 45 s more. Waiting is free. Do not create it again.`,
  ])
  expect(late.runs).toMatchObject([{ status: 'succeeded', files: [] }])
  const { text } = await mcp.call('wait_run', { ids: [id] })
  expect(text).toContain(join(mcp.folder, 'fox.png'))
})

it('a create with wait: false returns at once; after a restart of the server, wait_run saves to its output, and never outside the folder', async () => {
  const { engine, service, mcp } = await openCommanded()
  const created = await mcp.call('create_image', {
    prompt: 'a fox',
    wait: false,
    output: 'pics/{id}-fox.{ext}',
  })
  expect(created.runs).toMatchObject([{ output: null, files: [] }])
  expect(service.clock.monotonic()).toBeLessThan(2_000)
  const [{ id }] = created.runs
  await mcp.end()
  engine.finish()
  const path = join(mcp.folder, 'pics', `${id}-fox.png`)
  const again = await openMcp(service, { folder: mcp.folder })
  for (const _twice of [1, 2])
    expect((await again.call('wait_run', { ids: [id] })).run.files[0].path).toBe(path)
  const other = await openMcp(service)
  const { run } = await other.call('wait_run', { ids: [id] })
  expect(run.files[0].path).toBe(join(other.folder, `${id}.png`))
})

it('cancel_run cancels a run that has not ended, and names it in an error after 45 s without an answer of the service', async () => {
  const service = await createCliService({ rendering: false })
  let isSilent = false
  const fetch: Fetch = (request) =>
    isSilent ? raceAbort(new Promise(() => {}), request.signal) : service.counting(request)
  const mcp = await openMcp(service, { fetch })
  const created = await mcp.call('create_image', { prompt: 'a fox', wait: false })
  const ids = [created.run.id]
  const canceled = await mcp.call('cancel_run', { ids })
  expect(canceled).toMatchObject({ isError: false, run: { id: ids[0], status: 'canceled' } })
  const unknown = await mcp.call('cancel_run', { ids: ['run_none'] })
  expect(unknown.error).toMatchObject({ code: 'run_not_found' })
  isSilent = true
  const asked = mcp.begin('cancel_run', { ids })
  await service.clock.advance(46_000)
  const { error, isError } = await service.clock.runUntil(asked)
  expect(isError).toBe(true)
  expect(error).toMatchObject({ code: 'network', exit_code: 9, message: expect.stringContaining(ids[0]) })
})

it('wait_run waits for several runs, into a folder', async () => {
  const { mcp } = await open()
  const ids: string[] = []
  for (const prompt of ['a fox', 'a bear'])
    ids.push((await mcp.call('create_image', { prompt, wait: false })).run.id)
  const refused = await mcp.call('wait_run', { ids, output: 'one.png' })
  expect(refused.error.message).toBe('output: one.png names one file, but 2 runs were given.')
  const { runs } = await mcp.call('wait_run', { ids, output: 'pics/' })
  expect(runs.map(({ status }: { status: string }) => status)).toEqual(['succeeded', 'succeeded'])
  expect(readdirSync(join(mcp.folder, 'pics')).length).toBe(2)
})

it('one request_id creates one run: repeated, in parallel, and after a restart of the server', async () => {
  const service = await createCliService()
  const args = { prompt: 'a fox', request_id: 'fox-1' }
  const first = await openMcp(service)
  const both = await service.clock.runUntil(
    Promise.all([first.begin('create_image', args), first.begin('create_image', args)]),
  )
  const again = await first.call('create_image', args)
  await first.end()
  const second = await openMcp(service)
  const later = await second.call('create_image', args)
  const ids = [...both, again, later].map(({ run }) => run.id)
  expect(new Set(ids).size).toBe(1)
  expect(later.structured).toMatchObject({ request_id: 'fox-1', runs: [{ status: 'succeeded' }] })
  expect(service.creates()).toHaveLength(1)
  const listed = await second.call('list_runs')
  expect(listed.runs).toMatchObject([{ id: ids[0], request_id: 'fox-1' }])
})

it('one request_id means the same call in any order of parameters and with the configured model named', async () => {
  const { engine, service, mcp } = await openCommanded()
  write(mcp, 'a.png', ONE_PIXEL_PNG)
  const one = { prompt: 'a fox', aspect_ratio: '1:1', image_urls: ['a.png'], request_id: 'one' }
  const others = [
    Object.fromEntries(Object.entries(one).reverse()),
    { ...one, model: 'rushes/preview-image' },
    { ...one, wait: false },
  ]
  const first = await mcp.call('create_image', { ...one, wait: false })
  const running = await service.clock.runUntil(
    Promise.all(others.map((args) => mcp.begin('create_image', { ...args, wait: false }))),
  )
  engine.finish()
  await mcp.call('wait_run', { ids: [first.run.id] })
  const finished = await service.clock.runUntil(
    Promise.all(others.map((args) => mcp.begin('create_image', args))),
  )
  for (const { text, runs } of [...running, ...finished]) expect(runs?.[0].id, text).toBe(first.run.id)
  expect(service.creates()).toHaveLength(1)
})

it('one request_id does not pay while the first create is unanswered', async () => {
  const { service, mcp, release } = await openSlow()
  const args = { prompt: 'a fox', request_id: 'slow' }
  const [first, second] = [mcp.begin('create_image', args), mcp.begin('create_image', args)]
  await untilCreated(service)
  await service.clock.advance(46_000)
  for (const { text, isError, structured } of [await first, await second]) {
    expect(text).toMatch(/^The service has not answered yet\. Call the same tool again /)
    expect(isError).toBe(false)
    expect(structured).toMatchObject({ runs: [], request_id: 'slow' })
  }
  // Another server on the same machine sees it in the journal.
  const other = await openMcp(service)
  const elsewhere = await other.call('create_image', args)
  expect(elsewhere.error).toMatchObject({ code: 'submission_unknown', exit_code: 13 })
  release()
  const { run } = await mcp.call('create_image', args)
  expect(run.status).toBe('succeeded')
  expect(service.creates()).toHaveLength(1)
})

it('a run whose status the service does not answer is named, by wait_run and by its repeated create', async () => {
  const service = await createCliService()
  const fetch = withFaults(service.counting, ['status:latency:50s'], service.clock)
  const args = { prompt: 'a fox', request_id: 'fox' }
  const { run } = await (await openMcp(service)).call('create_image', { ...args, wait: false })
  const mcp = await openMcp(service, { fetch })
  const waited = await mcp.call('wait_run', { ids: [run.id] })
  const repeated = await mcp.call('create_image', args)
  for (const { text } of [waited, repeated])
    expect(text).toContain(
      `${run.id} is still running (no status yet). Call wait_run with {"ids":["${run.id}"]}`,
    )
})

it('a create that is too large with an output of an earlier run is not counted', async () => {
  const file = join(temporaryFolder(), 'film.mp4')
  writeFileSync(file, Buffer.alloc(49 * 1_048_576))
  const url = `${SET.RUSHES_BASE_URL}/gone.mp4`
  const service = await createCliService({
    journal: [{ id: 'run_1', urls: [url], files: [{ path: file, url, sha256: sha256(file) }] }],
  })
  const mcp = await openMcp(service, { words: ['--max-runs', '1'] })
  const { error } = await mcp.call('create_image', { prompt: 'a fox', image_urls: ['run:run_1'] })
  expect(error.message).toContain('the limit for a request body is 64 MiB')
  expect((await mcp.call('create_image', { prompt: 'a fox' })).run.status).toBe('succeeded')
})

it('one request_id does not pay after a create whose outcome is unknown', async () => {
  const service = await createCliService()
  const fetch = withFaults(service.counting, ['create:lose'], service.clock)
  const mcp = await openMcp(service, { fetch })
  const args = { prompt: 'a fox', request_id: 'lost' }
  await mcp.call('create_image', args)
  const again = await mcp.call('create_image', args)
  expect(again.error).toMatchObject({ code: 'submission_unknown', exit_code: 13 })
  expect(again.error.message).toMatch(/^The create with the request_id "lost" has an unknown outcome \(~/)
  expect(service.creates()).toHaveLength(1)
  const { run, runs } = await mcp.call('list_runs', { status: 'unconfirmed' })
  expect(runs).toMatchObject([{ id: null, request_id: 'lost' }])
  // The service knows no keys: its 404 would read as if there were no run.
  for (const tool of ['wait_run', 'cancel_run']) {
    const answer = await mcp.call(tool, { ids: [run.key] })
    expect(JSON.stringify(answer.structured)).toContain('"submission_unknown"')
  }
})

it('one request_id can be used again after a create that was refused, and does not stand for another input', async () => {
  const { service, mcp } = await open()
  const args = { prompt: 'a fox', request_id: 'one' }
  const refused = await mcp.call('create_image', { ...args, model: 'no/such' })
  expect(refused.error.code).toBe('model_not_found')
  expect((await mcp.call('create_image', args)).isError).toBe(false)
  const { error } = await mcp.call('create_image', { ...args, prompt: 'a bear' })
  expect(error).toMatchObject({
    code: 'usage',
    message: 'The request_id "one" was used in a call with other arguments. Nothing was sent.',
  })
  expect(service.creates()).toHaveLength(2)
})

it('--max-runs refuses further creates, and counts those of a batch and only accepted ones', async () => {
  const { service, mcp } = await open({ words: ['--max-runs', '3'] })
  write(mcp, 'shots.yaml', MANIFEST)
  await mcp.call('create_image', { prompt: 'x', model: 'no/such' })
  await mcp.call('create_image', { prompt: 'x' })
  const planned = await mcp.call('plan_batch', { manifest: 'shots.yaml' })
  expect(planned.structured).toMatchObject({ summary: { create: 2 } })
  await mcp.call('run_batch', { manifest: 'shots.yaml' })
  write(mcp, 'more.yaml', '- { name: c, kind: image, prompt: x }\n')
  for (const [tool, args] of [
    ['create_image', { prompt: 'y' }],
    ['run_batch', { manifest: 'more.yaml' }],
  ] as const) {
    const { isError, error } = await mcp.call(tool, args)
    expect(isError).toBe(true)
    expect(error.message).toBe('This session may create 3 runs in all; 0 left. Nothing was sent.')
  }
  expect(service.creates()).toHaveLength(4)
  // What costs nothing still works.
  expect((await mcp.call('list_runs')).runs).toHaveLength(3)
})

it('a batch continues after 45 s; the same call waits for it and gets its result once', async () => {
  const { engine, service, mcp } = await openCommanded()
  write(mcp, 'shots.yaml', MANIFEST)
  const first = await mcp.call('run_batch', { manifest: 'shots.yaml' })
  expect(first).toMatchObject({ isError: false, structured: { is_running: true } })
  const other = await mcp.call('run_batch', { manifest: 'shots.yaml', overwrite: true })
  expect(other.error.message).toBe(
    `The manifest ${join(mcp.folder, 'shots.yaml')} was used in a call with other arguments. Nothing was sent.`,
  )
  // It ends while no call waits for it: a failed row is not paid again unasked.
  engine.fail(new Error('no ink'))
  engine.finish()
  await service.clock.advance(30_000)
  const second = await mcp.call('run_batch', { manifest: 'shots.yaml' })
  expect(second.text).toContain('This is the result of the batch that an earlier call started.')
  expect(second.structured.summary).toMatchObject({ created: 1, failed: 1 })
  expect(second.isError).toBe(true)
  expect(service.creates()).toHaveLength(2)
  const [made] = second.structured.rows.filter(({ result }: { result: string }) => result === 'created')
  expect(existsSync(made.file)).toBe(true)
  expect(second.content.filter(({ type }) => type === 'resource_link')).toHaveLength(1)
})

it('a call of a batch right after a cancelled one waits until that has ended, and continues without paying twice', async () => {
  const { engine, service, mcp } = await openCommanded()
  write(mcp, 'shots.yaml', MANIFEST)
  const { cancel, failed } = cancellable(mcp, 'run_batch', { manifest: 'shots.yaml' })
  await untilCreated(service, 2)
  await service.clock.advance(2_000)
  cancel()
  await failed
  const both = [
    mcp.begin('run_batch', { manifest: 'shots.yaml' }),
    mcp.begin('run_batch', { manifest: 'shots.yaml' }),
  ]
  engine.finish()
  engine.finish()
  for (const { structured, text } of await service.clock.runUntil(Promise.all(both)))
    expect(structured.summary, text).toMatchObject({ total: 2, failed: 0 })
  expect(readdirSync(join(mcp.folder, 'out')).sort()).toEqual(['a.png', 'b.png'])
  expect(service.creates()).toHaveLength(2)
})

it('a batch reads no manifest and no media outside the folder, writes no lock file there, and reports the lines of problems', async () => {
  const { service, mcp } = await open()
  const elsewhere = join(temporaryFolder(), 'a.png')
  writeFileSync(elsewhere, ONE_PIXEL_PNG)
  write(mcp, 'far.yaml', `- { name: a, kind: image, prompt: x, image_urls: [${elsewhere}] }\n`)
  write(mcp, 'bad.yaml', 'runs:\n  - { name: a, kind: imge, prompt: x }\n')
  write(mcp, 'link.yaml', '- { name: a, kind: image, prompt: x }\n')
  const lock = join(temporaryFolder(), 'link.lock.json')
  writeFileSync(lock, '{}')
  symlinkSync(lock, join(mcp.folder, 'link.lock.json'))
  const film = { name: 'acme/film', kind: 'image', input: { mask: { type: 'string' } } }
  write(mcp, 'film.json', JSON.stringify(film))
  await service.run(['models', 'add', join(mcp.folder, 'film.json')])
  const mask = (path: string) => ({ model: 'acme/film', input: { prompt: 'x', mask: path } })
  const refused: readonly [tool: string, args: object, message: string][] = [
    ['plan_batch', { manifest: 'far.yaml' }, `image_urls: ${elsewhere} is outside`],
    ['run_batch', { manifest: 'far.yaml' }, `image_urls: ${elsewhere} is outside`],
    ['run_batch', { manifest: '../shots.yaml' }, 'manifest: ../shots.yaml is outside'],
    ['run_batch', { manifest: 'link.yaml' }, `lock file: ${lock} is outside`],
    ['plan_batch', { manifest: 'bad.yaml' }, 'The manifest'],
    ['create_model_run', mask('../a.png'), 'mask: ../a.png is outside'],
    ['create_model_run', mask('bad.yaml'), 'bad.yaml is not a PNG'],
  ]
  for (const [tool, args, message] of refused) {
    const { error } = await mcp.call(tool, { ...args })
    expect(error.message, tool).toContain(message)
    if (message === 'The manifest') expect(error.hint).toMatch(/bad\.yaml:2:/)
  }
  expect(service.creates()).toHaveLength(0)
})

it('cancellation leaves the run alive, and names it in the log and in list_runs', async () => {
  const { engine, service, mcp } = await openCommanded()
  const { cancel, failed } = cancellable(mcp, 'create_image', { prompt: 'a fox' })
  await untilCreated(service)
  await service.clock.advance(5_000)
  cancel()
  await service.clock.runUntil(failed)
  await service.clock.advance(1_000)
  const { runs } = await mcp.call('list_runs')
  const [{ id }] = runs
  expect(mcp.stderr()).toContain(`Interrupted. ${id} is still running.`)
  // It is not asked for any longer.
  const { length } = service.requests
  await service.clock.advance(20_000)
  expect(service.requests.length).toBe(length)
  engine.finish()
  expect((await mcp.call('wait_run', { ids: [id] })).run.status).toBe('succeeded')
})

it('cancellation of one of two calls that wait for the same run ends only that call', async () => {
  const { engine, service, mcp } = await openCommanded()
  const args = { prompt: 'a fox', request_id: 'fox' }
  const { cancel, failed } = cancellable(mcp, 'create_image', args)
  const other = mcp.begin('create_image', args)
  await untilCreated(service)
  await service.clock.advance(5_000)
  cancel()
  await service.clock.runUntil(failed)
  engine.finish()
  const { runs, error } = await service.clock.runUntil(other)
  expect([runs, error]).toMatchObject([[{ status: 'succeeded' }], undefined])
  expect(mcp.stderr()).not.toContain('Interrupted')
})

it('cancellation of an unanswered create is undone by a repeated call, which gets the run', async () => {
  const { service, mcp, release } = await openSlow()
  const args = { prompt: 'a fox', request_id: 'x' }
  const { cancel, failed } = cancellable(mcp, 'create_image', args)
  await untilCreated(service)
  await service.clock.advance(2_000)
  cancel()
  await service.clock.runUntil(failed)
  const again = mcp.begin('create_image', args)
  await untilCreated(service)
  await service.clock.advance(1_000)
  release()
  expect((await service.clock.runUntil(again)).run.files).toHaveLength(1)
  expect(service.creates()).toHaveLength(1)
})

it('cancellation of a create that is not sent yet sends nothing', async () => {
  const { service, mcp, release } = await openSlow(createCommandedEngine(), { words: ['--max-runs', '50'] })
  // The request for the list of models is in an earlier window.
  await service.clock.advance(10_000)
  // The 20 requests of a window are in use by unanswered creates.
  const others = Array.from({ length: 20 }, (_, at) =>
    mcp.begin('create_image', { prompt: `fox ${at}`, wait: false }),
  )
  await untilCreated(service, 20)
  await service.clock.advance(1_000)

  const { cancel, failed } = cancellable(mcp, 'create_video', { prompt: 'never' })
  await service.clock.advance(1_000)
  cancel()
  await service.clock.runUntil(failed)
  release()
  await service.clock.advance(60_000)
  await Promise.all(others)
  expect(service.creates()).toHaveLength(20)
})

it.each([
  ['a client that disconnects', 0],
  ['SIGTERM', 143],
] as const)(
  'the end of a session %s during a paid run: exit %i, the id on standard error, the run in the journal',
  async (by, code) => {
    const { engine, service, mcp } = await openCommanded()
    mcp.begin('create_image', { prompt: 'a fox' }).catch(() => {})
    await untilCreated(service)
    await service.clock.advance(3_000)
    if (by === 'SIGTERM') mcp.interrupts.interrupt(by)
    else mcp.stdin.end()
    expect(await service.clock.runUntil(mcp.ended)).toBe(code)
    const [id = ''] = /run_\w+/.exec(mcp.stderr()) ?? []
    expect(mcp.stderr()).toMatch(
      new RegExp(`${id} is still running\\.\\s+Resume with .rushes wait -o \\S+ ${id}`),
    )
    const { stdout } = await service.run('list --json')
    expect(JSON.parse(stdout)).toMatchObject({ id, status: 'processing' })
    engine.finish()
    outputOf(await service.run(`wait ${id}`))
  },
)

it('the end of a session names a known run at once, before it waits for an unanswered create; a second signal ends that', async () => {
  const service = await createCliService({ engine: createCommandedEngine() })
  const { slow } = slowCreates(service.counting)
  let isSlow = false
  const fetch: Fetch = (request) => (isSlow ? slow(request) : service.counting(request))
  const mcp = await openMcp(service, { fetch })
  const { run } = await mcp.call('create_image', { prompt: 'a fox', wait: false })
  isSlow = true
  mcp.begin('create_image', { prompt: 'a bear' }).catch(() => {})
  await untilCreated(service, 2)
  await service.clock.advance(1_000)
  mcp.stdin.end()
  await service.clock.advance(1_000)
  expect(mcp.stderr()).toContain(`${run.id} is still running.`)
  // Clients send SIGTERM 2 s after they have closed standard input, and a reader that has gone is found meanwhile.
  mcp.interrupts.interrupt('SIGTERM')
  mcp.interrupts.interrupt('stdout closed')
  await service.clock.advance(3_000)
  expect(mcp.stderr()).not.toContain('may exist')
  mcp.interrupts.interrupt('SIGTERM')
  await service.clock.runUntil(mcp.ended)
  expect(mcp.stderr()).toContain('a run may exist and cost money')
})

it('a client that does not keep to the protocol gets errors that name tools and parameters, and malformed messages are ignored with a line in the log', async () => {
  const { service, mcp } = await open()
  mcp.stdin.write('{"jsonrpc": \n')
  mcp.stdin.write('[1,2]\n\n')
  mcp.stdin.write('{"jsonrpc":"2.0","id":7}\n')
  expect((await mcp.call('list_runs')).text).toBe('{"runs":[]}')
  expect(mcp.stderr()).toContain('Protocol error: ')
  await expect(mcp.call('create_imge', { prompt: 'x' })).rejects.toThrow('Unknown tool "create_imge".')
  const nested = JSON.parse(`${'['.repeat(3_000)}${']'.repeat(3_000)}`)
  const refused: readonly [tool: string, args: object, message: RegExp][] = [
    ['create_image', { prompt: nested }, /^prompt must be string\./],
    [
      'create_image',
      { prompt: 'x', zzz: nested },
      /^create_image must NOT have additional properties: "zzz"\.$/,
    ],
    ['plan_batch', { manifest: 'a\0b' }, /contains a null character/],
  ]
  for (const [tool, args, message] of refused) {
    const { error } = await mcp.call(tool, { ...args })
    expect(error, tool).toMatchObject({ code: 'usage', message: expect.stringMatching(message) })
  }
  expect(service.requests).toEqual([])
  const { isError, error } = await mcp.call('wait_run', { ids: ['run_nope'] })
  expect(isError).toBe(true)
  expect(error).toMatchObject({ code: 'run_not_found', http_status: 404, run_id: 'run_nope' })
  expect((await mcp.call('show_run', { id: 'nope' })).isError).toBe(true)
})

it('a message of more than 10 MiB ends the server, which says so', async () => {
  const { service, mcp } = await open()
  mcp.stdin.write('x'.repeat(10 * 1024 ** 2 + 1))
  expect(await service.clock.runUntil(mcp.ended)).toBe(0)
  expect(mcp.stderr()).toContain('A message had more than 10 MiB, so this server ends. Give images as paths.')
})

it.each([
  ['--max-runs', '1.5'],
  ['--folder', 'no/such'],
])('%s %s is exit 2', async (flag, value) => {
  expect(usageErrorOf(await runCli(['mcp', flag, value], { env: SET }))).toContain(`error: ${flag}`)
})
