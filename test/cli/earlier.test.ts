/** Runs that were created earlier: `wait --last`, `wait --all`, `download`, `run:<id>`, `--sidecar`. */

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import type { Engine } from '../../src/service/engines/engine.js'
import { imagesSentFor } from '../support/family.js'
import {
  addRow,
  type CliService,
  createCliService,
  createHome,
  createInstantEngine,
  ONE_PIXEL_PNG,
  responseOf,
  rowsOf,
  runCli,
  SET,
  scripted,
  temporaryFolder,
} from '../support/index.js'

const RUN = ['run', 'image', 'a fox']
const posts = ({ requests }: CliService) => requests.filter(({ method }) => method === 'POST').length

/** The host of an output. */
const png: Fetch = async () =>
  responseOf({
    status: 200,
    body: ONE_PIXEL_PNG,
    headers: { 'content-type': 'image/png', 'content-length': String(ONE_PIXEL_PNG.byteLength) },
  })

/** Creates runs without waiting; their ids. */
async function created(service: CliService, ...words: string[]): Promise<readonly string[]> {
  const { stdout } = await service.run([...RUN, '--no-wait', ...words])
  return stdout.trim().split('\n')
}

const NOT_FOUND = { status: 404, body: { error: { code: 'run_not_found', message: 'no' } } }

const failing: Engine = {
  async render() {
    throw new Error('no colour left')
  },
}

it('wait --last and --all find runs without their ids', async () => {
  const service = await createCliService()
  const ids = await created(service, '-n', '3')
  const last = await service.run('wait --last --json')
  expect(JSON.parse(last.stdout)).toMatchObject({
    id: ids[2],
    kind: 'image',
    model: 'rushes/preview-image',
  })
  const all = await service.run('wait --all --json')
  expect([...all.stdout.matchAll(/^\{"id":"(\w+)"/gm)].map(([, id]) => id)).toEqual(ids.slice(0, 2))
  const none = await service.run('wait --all')
  expect(none).toMatchObject({ code: 0, stdout: '' })
  expect(none.stderr).toMatch(/No unfinished runs/)
})

it.each(['wait', 'download'])(
  'wait --last and --all --last of %s uses the -o of the run until it has a file',
  async (command) => {
    const service = await createCliService({ rendering: false })
    const path = join(temporaryFolder(), 'whale.png')
    const run = await service.run([...RUN, '-o', path, '--timeout', '1s'])
    expect(run.code).toBe(11)
    const shown = relative('.', path)
    service.service.startRendering()
    const ended = await service.run(`${command} --last --timeout 1m`)
    expect(ended).toMatchObject({ code: 0, stdout: `${shown}\n` })
    expect(readFileSync(path)).toEqual(ONE_PIXEL_PNG)
    // Other flags, another way to name the run, and a run that has its file.
    const [{ id = '' } = {}] = rowsOf(service.home)
    expect((await service.run('wait --last')).stdout).toMatch(/^http/)
    expect((await service.run(`wait ${id}`)).stdout).toMatch(/^http/)
  },
)

it.each([
  ['a.png', ['a.png', 'a-2.png', 'a-3.png']],
  ['a-{index}.png', ['a-1.png', 'a-2.png', 'a-3.png']],
])(
  'wait --last and --all several runs under one -o %s have its names when they are resumed, also by --last',
  async (output, names) => {
    const service = await createCliService({ rendering: false })
    const folder = temporaryFolder()
    const path = join(folder, output)
    const { stderr } = await service.run([...RUN, '-n', '3', '-o', path, '--timeout', '1s'])
    const ids = rowsOf(service.home)
      .map(({ id = '' }) => id)
      .reverse()
    const [, command = ''] = /`rushes (wait .*)`/.exec(stderr) ?? []
    expect(command.replaceAll("'", '')).toBe(`wait -o ${path} ${ids.join(' ')}`)
    service.service.startRendering()
    const shown = names.map((name) => relative('.', join(folder, name)))
    expect((await service.run('wait --last')).stdout).toBe(`${shown[2]}\n`)
    // Without the last one, the names of the others are those of the command too.
    const others = await service.run(['wait', ...ids.slice(0, 2)])
    expect(others.stdout).toBe(`${shown[0]}\n${shown[1]}\n`)
  },
)

it('many runs under one -o are resumed by wait --all, with the names of the command', async () => {
  const service = await createCliService({ rendering: false })
  const path = join(temporaryFolder(), 'a-{index}.png')
  const { stderr } = await service.run([...RUN, '-n', '11', '-o', path, '--timeout', '1s'])
  expect(stderr).toContain('Resume with `rushes wait --all`.')
  service.service.startRendering()
  const names = Array.from({ length: 11 }, (_, at) => relative('.', path.replace('{index}', `${at + 1}`)))
  expect((await service.run('wait --all')).stdout.split('\n').filter(Boolean)).toEqual(names)
})

it('wait --last and --all name what is unconfirmed and leave it; --last is exit 13', async () => {
  const { run, rows } = createHome()
  await run(RUN, { fetch: scripted({ status: 500 }).fetch })
  const all = await run('wait --all')
  expect(all.code).toBe(0)
  expect(all.stderr).toMatch(/warning: ~[0-9a-f]{4} \(acme\/still-1, \S+\) is unconfirmed: a run may exist/)
  const last = await run('wait --last')
  expect(last.code).toBe(13)
  expect(last.stderr).toMatch(/rushes forget '~/)
  expect(rows()).toHaveLength(1)
})

it('wait --last and --all look only at the current address', async () => {
  const service = await createCliService()
  await created(service)
  const env = { RUSHES_BASE_URL: 'http://127.0.0.1:2' }
  expect(await service.run('wait --last', { env })).toMatchObject({ code: 2, stdout: '' })
  expect(await service.run('wait --all', { env })).toMatchObject({ code: 0, stdout: '' })
})

it('wait --last and --all know how long a run took though another command made it', async () => {
  const service = await createCliService({ rendering: false })
  const [id] = await created(service)
  await service.clock.advance(60_000)
  service.service.startRendering()
  const { elapsed_ms } = JSON.parse((await service.run(['wait', id ?? '', '--json'])).stdout)
  expect(elapsed_ms).toBeGreaterThanOrEqual(60_000)
})

it('wait --all leaves a run that the service does not know in the journal: the key may be the wrong one', async () => {
  const service = await createCliService()
  const [id] = await created(service)
  const lost = await service.run('wait --all', { fetch: scripted(NOT_FOUND).fetch })
  expect(lost.code).toBe(6)
  expect(rowsOf(service.home)).toMatchObject([{ id, phase: 'running', error: { code: 'run_not_found' } }])
  expect((await service.run('wait --all')).code).toBe(0)
  expect(rowsOf(service.home)).toMatchObject([{ id, phase: 'succeeded', error: undefined }])
})

it('--last of status, download and show selects the newest run of the current service', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const [, id] = await created(service, '-n', '2')
  addRow(service.home, { address: 'local', id: 'run_local' })
  await service.run('wait --last')
  expect((await service.run('status --last')).stdout).toMatch(new RegExp(`^${id}\tsucceeded\t`))
  expect((await service.run(`download --last -o ${folder}/`)).stdout).toBe(`${folder}/${id}.png\n`)
  expect(JSON.parse((await service.run('show --last --json')).stdout)).toMatchObject({ id })
  expect(JSON.parse((await service.run('show --last --local --json')).stdout).id).toBe('run_local')
})

it('--last of status, download and show shows an unconfirmed run, and ends with exit 13 when the service would be needed', async () => {
  const { run, rows } = createHome()
  await run(RUN, { fetch: scripted({ status: 500 }).fetch })
  const key = String(rows()[0]?.key)
  for (const command of ['status', 'download', 'wait', 'cancel'])
    for (const which of ['--last', key]) {
      // The service knows no keys: its 404 would read as if there were no run.
      const { fetch, requests } = scripted({ status: 404 })
      const { code, stderr } = await run([command, which], { fetch })
      expect([code, stderr]).toEqual([13, expect.stringContaining(`${key} (acme/still-1, `)])
      expect(requests).toEqual([])
    }
  const shown = await run('show --last --json')
  expect(JSON.parse(shown.stdout)).toMatchObject({ id: null, status: 'unconfirmed' })
})

it.each([
  ['status', 'Missing run ids.'],
  ['status - -', 'More than one id is -.'],
  ['show ~3f2a --last', 'Run ids and --last cannot be used together.'],
  ['show --last', 'The journal has no runs at http://127.0.0.1:1.'],
])('--last of status, download and show %j is exit 2', async (words, says) => {
  const { code, stderr } = await runCli(words, { env: SET })
  expect({ code, stderr: stderr.split('\n')[0] }).toEqual({ code: 2, stderr: `error: ${says}` })
})

it('download has nothing to do where the file of that run is still there, and does it again where it is another', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  await service.run([...RUN, '-o', path, '--sidecar'])
  const id = rowsOf(service.home)[0]?.id ?? ''
  const again = (...words: string[]) => service.run(['download', id, '-o', path, '--sidecar', ...words])
  const before = service.requests.length
  expect(await again()).toMatchObject({ code: 0, stdout: `${path}\n` })
  expect(service.requests.length - before).toBe(1)
  expect((await service.run(['download', id, '-o', path.replace('png', '{ext}')])).stdout).toBe(`${path}\n`)
  writeFileSync(path, Buffer.alloc(ONE_PIXEL_PNG.byteLength))
  expect(await again()).toMatchObject({ code: 12, stdout: '' })
  expect(await again('--overwrite')).toMatchObject({ code: 0, stdout: `${path}\n` })
  expect(readFileSync(path)).toEqual(ONE_PIXEL_PNG)
})

it('download takes no file of another output for the one that it wants, and replaces it with --overwrite', async () => {
  const { run } = createHome()
  const folder = temporaryFolder()
  const second = Buffer.concat([ONE_PIXEL_PNG, Buffer.from('second')])
  const urls = ['http://127.0.0.1/1', 'http://127.0.0.1/2']
  const fetch: Fetch = async ({ method, url }) => {
    if (url.pathname === '/1' || url.pathname === '/2')
      return responseOf({
        status: 200,
        body: url.pathname === '/1' ? ONE_PIXEL_PNG : second,
        headers: { 'content-type': 'image/png' },
      })
    const id = method === 'POST' ? 'run_two' : url.pathname.split('/').at(-1)
    const output = { urls: id === 'run_two' ? urls : urls.slice(0, 1) }
    return responseOf({ status: method === 'POST' ? 201 : 200, body: { id, status: 'succeeded', output } })
  }
  const named = join(folder, '{index}.png')
  await run([...RUN, '--no-wait'], { fetch })
  expect((await run(['wait', 'run_one', 'run_two', '-o', named], { fetch })).code).toBe(0)
  rmSync(join(folder, '1.png'))
  const download = (...words: string[]) => run(['download', 'run_two', '-o', named, ...words], { fetch })
  expect((await download()).code).toBe(12)
  expect((await download('--overwrite')).code).toBe(0)
  expect(readFileSync(join(folder, '1.png'))).toEqual(ONE_PIXEL_PNG)
  expect(readFileSync(join(folder, '2.png'))).toEqual(second)
})

it('download ends with exit 11 after one request for a run that goes on, and waits only with --timeout', async () => {
  const service = await createCliService({ rendering: false })
  const [id = ''] = await created(service)
  const folder = temporaryFolder()
  const before = service.requests.length
  const { code, stdout, stderr } = await service.run(`download ${id} -o ${folder}/`)
  expect({ code, stdout, looks: service.requests.length - before }).toEqual({
    code: 11,
    stdout: '',
    looks: 1,
  })
  expect(stderr).toContain(`rushes wait -o ${folder}/ ${id}`)
  expect((await service.run(`download ${id} -o ${folder}/ --timeout 30s`)).code).toBe(11)
  service.service.startRendering()
  expect((await service.run(`download ${id} -o ${folder}/ --timeout 30s`)).code).toBe(0)
})

it('download ends with exit 10 for a run that failed', async () => {
  const service = await createCliService({ engine: failing })
  const [id = ''] = await created(service)
  await service.run(`wait ${id}`)
  expect(await service.run(`download ${id}`)).toMatchObject({ code: 10, stdout: '' })
  expect(rowsOf(service.home)).toMatchObject([
    { phase: 'failed', status: 'failed', error: { code: 'run_failed' } },
  ])
})

it('download works as the hint of a failed download gives it, into the same place', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const words = [...RUN, '-o', `${folder}/fox.png`, '--sidecar']
  const { code, stderr } = await service.run(words, { faults: ['output:400'] })
  expect(code).toBe(12)
  const id = rowsOf(service.home)[0]?.id ?? ''
  const [, command = ''] = /with `rushes (.*)`\.$/m.exec(stderr) ?? []
  expect(command).toBe(`download -o ${folder}/fox.png --sidecar ${id}`)
  expect((await service.run(command.split(' '))).stdout).toBe(`${folder}/fox.png\n`)
})

it('a download of several outputs that a signal ends knows again the file that has its name already', async () => {
  const home = temporaryFolder()
  const folder = temporaryFolder()
  const interrupts = createInterrupts()
  addRow(home, { id: 'run_1' })
  const urls = ['https://cdn.test/1', 'https://cdn.test/2']
  const run = scripted({ status: 200, body: { status: 'succeeded', output: { urls } } })
  const host: Fetch = async (request) => (request.url.host === 'cdn.test' ? png(request) : run.fetch(request))
  const { stdout, stderr, code } = await runCli(`download run_1 -o ${folder}/`, {
    ...{ home, interrupts, env: SET },
    fetch: async (request) => {
      if (request.url.pathname !== '/2') return host(request)
      while (!existsSync(`${folder}/run_1-1.png`)) await new Promise((resolve) => setImmediate(resolve))
      interrupts.interrupt('SIGINT')
      throw request.signal?.reason
    },
  })
  expect({ code, stdout }).toEqual({ code: 130, stdout: `${folder}/run_1-1.png\n` })
  const [, command = ''] = /with `rushes (.*)`\.$/m.exec(stderr) ?? []
  const hosted: string[] = []
  const again = await runCli(command.split(' '), {
    ...{ home, env: SET },
    fetch: (request) => {
      if (request.url.host === 'cdn.test') hosted.push(request.url.pathname)
      return host(request)
    },
  })
  expect(again).toMatchObject({ code: 0, stdout: `${folder}/run_1-1.png\n${folder}/run_1-2.png\n` })
  expect(hosted).toEqual(['/2'])
})

it('-i run:<id> sends the link of that output, fresh from the service', async () => {
  const service = await createCliService()
  const { stdout: url } = await service.run(RUN)
  const id = rowsOf(service.home)[0]?.id
  const { code } = await service.run(`run video "it runs" -i run:${id}`)
  expect(code).toBe(0)
  const body = JSON.parse(
    Buffer.from(service.requests.findLast(({ method }) => method === 'POST')?.body ?? []).toString(),
  )
  expect(body.input).toEqual({ prompt: 'it runs', image_urls: [url.trim()] })
})

it.each([
  ['a run that was not created here', 'run:run_nobody', /this run was not created on this machine/],
  ['an output that is not there', 'run:ID#2', /this run has 1 output, counted from 1/],
  ['an output numbered 0', 'run:ID#0', /counted from 1/],
])('-i run:<id> %s is exit 2, and nothing is created', async (_, source, message) => {
  const service = await createCliService()
  await service.run(RUN)
  const id = rowsOf(service.home)[0]?.id ?? ''
  const { code, stderr } = await service.run(['run', 'video', 'it runs', '-i', source.replace('ID', id)])
  expect({ code, posts: posts(service) }).toEqual({ code: 2, posts: 1 })
  expect(stderr).toMatch(message)
})

it('-i run:<id> of a run at another address names that address, and the ways out', async () => {
  const service = await createCliService()
  addRow(service.home, { id: 'run_there', address: 'https://other.example' })
  const { code, stderr } = await service.run('run video "it runs" -i run:run_there')
  expect({ code, posts: posts(service) }).toEqual({ code: 2, posts: 0 })
  expect(stderr).toContain('run_there was created at https://other.example')
  expect(stderr).toContain('Use --base-url https://other.example. Or give the URL or the file of the output.')
})

it('-i run:<id> of a run that still goes on is exit 2', async () => {
  const service = await createCliService({ rendering: false })
  const [id] = await created(service)
  const { code, stderr } = await service.run(`run video "it runs" -i run:${id}`)
  expect({ code, posts: posts(service) }).toEqual({ code: 2, posts: 1 })
  expect(stderr).toContain(`rushes wait ${id}`)
})

it('-i run:<id>#2 sends the second file of the run when its link is dead, unless it was changed', async () => {
  const service = await createCliService({ engine: createInstantEngine({ files: ['0.png', '1.png'] }) })
  const folder = temporaryFolder()
  const { id } = JSON.parse((await service.run(`run image "a fox" --json -o ${folder}/{index}.png`)).stdout)
  const create = () => service.run(`run image "a hen" -i run:${id}#2 --no-wait`, { faults: ['output:403'] })
  expect((await create()).code).toBe(0)
  expect(imagesSentFor(service, 'a hen')).toEqual([
    `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`,
  ])
  writeFileSync(join(folder, '2.png'), 'changed')
  const { code, stderr } = await create()
  expect(code).toBe(2)
  expect(stderr).toMatch(
    /the service does not have this output any more, and \S+2\.png was changed after it was downloaded/,
  )
})

it('-i run:<id> of an output that is nowhere is exit 2, and nothing is created', async () => {
  const service = await createCliService()
  await service.run(RUN)
  const id = rowsOf(service.home)[0]?.id
  const { code, stderr } = await service.run(`run image "a hen" -i run:${id}`, { faults: ['output:404'] })
  expect({ code, posts: posts(service) }).toEqual({ code: 2, posts: 1 })
  expect(stderr).toContain('it was not downloaded. Nothing was created.')
})

it('--sidecar writes what an asset was made from beside it', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  const { code, stdout } = await service.run([...RUN, '-o', path, '--sidecar', '--json'])
  expect(code).toBe(0)
  const { id, files } = JSON.parse(stdout)
  expect(JSON.parse(readFileSync(`${path}.json`, 'utf8'))).toEqual({
    model: 'rushes/preview-image',
    input: { prompt: 'a fox', seed: expect.any(Number) },
    run_id: id,
    service: 'http://127.0.0.1:1',
    url: files[0].url,
    sha256: files[0].sha256,
    bytes: ONE_PIXEL_PNG.byteLength,
    content_type: 'image/png',
    width: 1,
    height: 1,
    created_at: expect.stringMatching(/Z$/),
    finished_at: expect.stringMatching(/Z$/),
    elapsed_ms: expect.any(Number),
  })
})

it('--sidecar in the way is exit 2 before anything is paid for, or replaced with --overwrite', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  writeFileSync(`${path}.json`, 'mine')
  expect((await service.run([...RUN, '-o', path, '--sidecar'])).code).toBe(2)
  expect({ posts: posts(service), made: existsSync(path) }).toEqual({ posts: 0, made: false })
  expect((await service.run([...RUN, '-o', path, '--sidecar', '--overwrite'])).code).toBe(0)
  expect(readFileSync(`${path}.json`, 'utf8')).toContain('"run_id"')
})

it('--sidecar that is a named pipe is not opened, whether its name was known before or not', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const path = join(folder, 'fox.png')
  execFileSync('mkfifo', [`${path}.json`])
  const { code, stderr } = await service.run([...RUN, '-o', path, '--sidecar'])
  expect([code, posts(service)]).toEqual([2, 0])
  expect(stderr).toContain(`${path}.json is not a regular file`)
  const made = await service.run([...RUN, '-o', join(folder, 'fox.{ext}'), '--sidecar'])
  expect(made.code).toBe(12)
  expect(made.stderr).toContain(`${path}.json is not a regular file`)
})

it.each([[[]], [['-o', '-']]])('--sidecar needs a file: with %j it is exit 2', async (words) => {
  expect((await runCli([...RUN, '--sidecar', ...words], { env: SET })).code).toBe(2)
})
