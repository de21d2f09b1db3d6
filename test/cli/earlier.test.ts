/** Runs that were created earlier: `wait --last`, `wait --all`, `download`, `run:<id>`, `--sidecar`. */

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import { imagesSentFor } from '../support/family.js'
import {
  addRow,
  type CliService,
  createCliService,
  createFamilyEngine,
  createHome,
  createInstantEngine,
  lines,
  ONE_PIXEL_PNG,
  objects,
  outputOf,
  runCli,
  SET,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'

const RUN = 'run image "a fox"'
const newest = ({ rows }: Pick<CliService, 'rows'>) => rows()[0]?.id ?? ''

it('wait --last and wait --all find runs without their ids', async () => {
  const service = await createCliService()
  const ids = await service.create('-n 3')
  const last = await service.run('wait --last --json')
  expect(JSON.parse(last.stdout)).toMatchObject({ id: ids[2], kind: 'image', model: 'rushes/preview-image' })
  const all = await service.run('wait --all --json')
  expect(objects(all.stdout).map(({ id }) => id)).toEqual(ids.slice(0, 2))
  const none = await service.run('wait --all')
  expect(none).toMatchObject({ code: 0, stdout: '' })
  expect(none.stderr).toMatch(/No unfinished runs/)
})

it.each(['wait', 'download'])('%s --last uses the -o of the run until it has its file', async (command) => {
  const service = await createCliService({ rendering: false })
  const path = join(temporaryFolder(), 'whale.png')
  expect((await service.run(`${RUN} -o ${path} --timeout 1s`)).code).toBe(11)
  service.service.startRendering()
  const ended = await service.run(`${command} --last --timeout 1m`)
  expect(ended).toMatchObject({ code: 0, stdout: `${relative('.', path)}\n` })
  expect(readFileSync(path)).toEqual(ONE_PIXEL_PNG)
  // Not for a run that has its file, or that is named in another way.
  expect(outputOf(await service.run('wait --last'))).toMatch(/^http/)
  expect(outputOf(await service.run(`wait ${newest(service)}`))).toMatch(/^http/)
})

it('wait --last does not take a file with the name - for standard output', async () => {
  const service = await createCliService({ rendering: false })
  await service.run(`${RUN} -o ./- --timeout 1s`)
  service.service.startRendering()
  expect((await service.run('wait --last')).stdout).toBe('./-\n')
  expect(readFileSync('-')).toEqual(ONE_PIXEL_PNG)
  rmSync('-')
})

it('wait --last uses the -o of a run whose file was complete, and did not get its name', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'whale.png')
  const link = () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }))
  expect((await service.run(`${RUN} -o ${path}`, { fileSystem: { link } })).code).toBe(12)
  outputOf(await service.run('wait --last'))
  expect(readFileSync(path)).toEqual(ONE_PIXEL_PNG)
})

it.each([
  ['a.png', ['a.png', 'a-2.png', 'a-3.png']],
  ['a-{index}.png', ['a-1.png', 'a-2.png', 'a-3.png']],
])(
  'several runs of one -o %s get its names when they are resumed, also one by one',
  async (output, names) => {
    const service = await createCliService({ rendering: false })
    const folder = temporaryFolder()
    const path = join(folder, output)
    const { stderr } = await service.run(`${RUN} -n 3 -o ${path} --timeout 1s`)
    const ids = service.rows().map(({ id = '' }) => id)
    const [third = '', second = '', first = ''] = ids
    expect(stderr.replaceAll("'", '')).toContain(`\`rushes wait -o ${path} ${first} ${second} ${third}\``)
    service.service.startRendering()
    const shown = names.map((name) => relative('.', join(folder, name)))
    expect(outputOf(await service.run('wait --last'))).toBe(`${shown[2]}\n`)
    // Without the last one, the names of the others are those of the command too.
    const others = await service.run(`wait -o ${path} ${first} ${second}`)
    expect(lines(others.stdout)).toEqual(names.slice(0, 2).map((name) => join(folder, name)))
  },
)

it.each(['wait', 'status'])(
  '%s --json has the time at which an earlier command saw the end of the run',
  async (command) => {
    const urls = ['http://127.0.0.1:1/fox.png']
    const answers = [{ status: 200, body: { id: 'run_7', status: 'succeeded', output: { urls } } }]
    const { run } = createHome({ journal: [{ id: 'run_7', urls }], answers })
    const { finished_at } = JSON.parse(outputOf(await run(`${command} run_7 --json`)))
    expect(finished_at).toBe('2025-12-31T00:00:00.000Z')
  },
)

it('wait counts the time of a run from its create in another command', async () => {
  const service = await createCliService({ rendering: false })
  const [id] = await service.create()
  await service.clock.advance(60_000)
  service.service.startRendering()
  const { elapsed_ms } = JSON.parse(outputOf(await service.run(`wait ${id} --json`)))
  expect(elapsed_ms).toBeGreaterThanOrEqual(60_000)
})

it('a run that the service does not know stays unfinished, because the key may be the wrong one', async () => {
  const service = await createCliService()
  const [id] = await service.create()
  expect((await service.run('wait --all', { faults: ['status:404:run_not_found'] })).code).toBe(6)
  expect(service.rows()).toMatchObject([{ id, phase: 'running', error: { code: 'run_not_found' } }])
  outputOf(await service.run('wait --all'))
  expect(service.rows()).toMatchObject([{ id, phase: 'succeeded', error: undefined }])
})

it('--last and --all select runs of the current service, and --last the newest', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const [, id] = await service.create('-n 2')
  addRow(service.home, { address: 'local', id: 'run_local' })
  await service.run('wait --last')
  expect(outputOf(await service.run('status --last'))).toMatch(new RegExp(`^${id}\tsucceeded\t`))
  expect(outputOf(await service.run(`download --last -o ${folder}/`))).toBe(`${folder}/${id}.png\n`)
  expect(JSON.parse(outputOf(await service.run('show --last --json')))).toMatchObject({ id })
  expect(JSON.parse(outputOf(await service.run('show --last --local --json'))).id).toBe('run_local')
  const env = { RUSHES_BASE_URL: 'http://127.0.0.1:2' }
  usageErrorOf(await service.run('wait --last', { env }))
  expect(outputOf(await service.run('wait --all', { env }))).toBe('')
})

it('an unconfirmed run is shown, is left by wait --all, and ends every command that would need the service with exit 13', async () => {
  const { run, rows, requests } = createHome({ answers: [{ status: 500 }] })
  await run(RUN)
  const key = String(rows()[0]?.key)
  for (const command of ['status', 'download', 'wait', 'cancel'])
    for (const which of ['--last', key]) {
      const { code, stderr } = await run([command, which])
      expect([code, stderr]).toEqual([13, expect.stringContaining(`${key} (acme/still-1, `)])
      expect(stderr).toContain(`rushes forget '${key}'`)
    }
  const all = await run('wait --all')
  expect(all.code).toBe(0)
  expect(all.stderr).toMatch(/warning: ~[0-9a-f]{4} \(acme\/still-1, \S+\) is unconfirmed: a run may exist/)
  expect(requests).toHaveLength(1)
  const shown = await run('show --last --json')
  expect(JSON.parse(shown.stdout)).toMatchObject({ id: null, status: 'unconfirmed' })
})

it.each([
  ['status - -', 'More than one id is -.'],
  ['show ~3f2a --last', 'Run ids and --last cannot be used together.'],
  ['show --last', 'The journal has no runs at http://127.0.0.1:1.'],
])('a selection of runs that is not one is a usage error: %s', async (line, message) => {
  expect(lines(usageErrorOf(await runCli(line, { env: SET })))[0]).toBe(`error: ${message}`)
})

it('download has nothing to do while the file of the run is there, and replaces a changed one with --overwrite', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  await service.run(`${RUN} -o ${path} --sidecar`)
  const again = (flags = '') => service.run(`download --last -o ${path} --sidecar ${flags}`)
  service.requests.length = 0
  expect(outputOf(await again())).toBe(`${path}\n`)
  expect(service.requests).toHaveLength(1)
  const named = path.replace('png', '{ext}')
  expect(outputOf(await service.run(`download --last -o ${named}`))).toBe(`${path}\n`)
  writeFileSync(path, Buffer.alloc(ONE_PIXEL_PNG.byteLength))
  expect(await again()).toMatchObject({ code: 12, stdout: '' })
  expect(outputOf(await again('--overwrite'))).toBe(`${path}\n`)
  expect(readFileSync(path)).toEqual(ONE_PIXEL_PNG)
})

it('download does not take the file of another output, and replaces it with --overwrite', async () => {
  const engine = createFamilyEngine()
  const { run, rows } = await createCliService({ engine })
  const folder = temporaryFolder()
  const file = (name: string) => join(folder, `${name}.png`)
  await run('run image one')
  engine.outputs = 2
  await run('run image two')
  const [two, one] = rows().map(({ id }) => id)
  outputOf(await run(`wait ${one} ${two} -o ${file('{index}')}`))
  const outputs = ['2', '3'].map((name) => readFileSync(file(name)))
  rmSync(file('1'))
  const download = (flags = '') => run(`download ${two} -o ${file('{index}')} ${flags}`)
  expect((await download()).code).toBe(12)
  outputOf(await download('--overwrite'))
  expect(['1', '2'].map((name) => readFileSync(file(name)))).toEqual(outputs)
})

it('download of a running run ends with exit 11 after one request, and waits only with --timeout', async () => {
  const service = await createCliService({ rendering: false })
  const [id] = await service.create()
  service.requests.length = 0
  const line = `download ${id} -o ${temporaryFolder()}/`
  const { code, stdout, stderr } = await service.run(line)
  expect({ code, stdout, requests: service.requests.length }).toEqual({ code: 11, stdout: '', requests: 1 })
  expect(stderr).toContain(line.replace(/download (\S+) (.*)/, 'rushes wait $2 $1'))
  expect((await service.run(`${line} --timeout 30s`)).code).toBe(11)
  service.service.startRendering()
  outputOf(await service.run(`${line} --timeout 30s`))
})

it('the hint of a failed download is a command that downloads into the same place', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const line = `${RUN} -o ${folder}/fox.png --sidecar`
  const { code, stderr } = await service.run(line, { faults: ['output:400'] })
  expect(code).toBe(12)
  const [, command = ''] = /with `rushes (.*)`\.$/m.exec(stderr) ?? []
  expect(command).toBe(`download -o ${folder}/fox.png --sidecar ${newest(service)}`)
  expect(outputOf(await service.run(command))).toBe(`${folder}/fox.png\n`)
})

it('a download that a signal ends is continued by its hint, and fetches only the outputs that have no file', async () => {
  const service = await createCliService({ engine: createFamilyEngine({ outputs: 2 }) })
  await service.run(RUN)
  const id = newest(service)
  const folder = temporaryFolder()
  const [first, second] = [`${folder}/${id}-1.png`, `${folder}/${id}-2.png`]
  const interrupts = createInterrupts()
  const fetch: Fetch = async (request) => {
    if (!request.url.pathname.endsWith('/1-image.png')) return service.counting(request)
    while (!existsSync(first)) await new Promise((resolve) => setImmediate(resolve))
    interrupts.interrupt('SIGINT')
    throw request.signal?.reason
  }
  const { stdout, stderr, code } = await service.run(`download ${id} -o ${folder}/`, { interrupts, fetch })
  expect({ code, stdout }).toEqual({ code: 130, stdout: `${first}\n` })
  const [, command = ''] = /with `rushes (.*)`\.$/m.exec(stderr) ?? []
  service.requests.length = 0
  expect(outputOf(await service.run(command))).toBe(`${first}\n${second}\n`)
  expect(service.requests.map(({ url }) => url.pathname.split('/').at(-1))).toEqual([id, '1-image.png'])
})

it('-i run:<id> sends the link of that output, fresh from the service', async () => {
  const service = await createCliService()
  const { stdout: url } = await service.run(RUN)
  outputOf(await service.run(`run video "it runs" -i run:${newest(service)}`))
  expect(service.creates()[1]?.input).toEqual({ prompt: 'it runs', image_urls: [url.trim()] })
})

it('-i of no output of a run is a usage error, and nothing is created', async () => {
  const service = await createCliService({ journal: [{ id: 'run_there', address: 'https://other.example' }] })
  await service.run(RUN)
  const id = newest(service)
  for (const [source, message] of [
    ['run_nobody', 'this run was not created on this machine'],
    [`${id}#2`, 'this run has 1 output, counted from 1'],
    [`${id}#0`, 'counted from 1'],
    [
      'run_there',
      'was created at https://other.example, not at http://127.0.0.1:1. Nothing was sent.\n  Use --base-url https://other.example. Or give the URL or the file of the output.',
    ],
  ])
    expect(usageErrorOf(await service.run(`run video "it runs" -i run:${source}`))).toContain(message)
  expect(service.creates()).toHaveLength(1)
})

it('-i run:<id> of a running run is a usage error that names the command to wait for it', async () => {
  const service = await createCliService({ rendering: false })
  const [id] = await service.create()
  expect(usageErrorOf(await service.run(`run video "it runs" -i run:${id}`))).toContain(`rushes wait ${id}`)
  expect(service.creates()).toHaveLength(1)
})

it('-i run:<id>#2 sends the second file of the run when its link has expired', async () => {
  const service = await createCliService({ engine: createInstantEngine({ files: ['0.png', '1.png'] }) })
  const folder = temporaryFolder()
  const { id } = JSON.parse(outputOf(await service.run(`run image "a fox" --json -o ${folder}/{index}.png`)))
  const line = `run image "a hen" -i run:${id}#2 --no-wait`
  outputOf(await service.run(line, { faults: ['output:403'] }))
  expect(imagesSentFor(service, 'a hen')).toEqual([
    `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`,
  ])
})

it('-i run:<id> of an output that is neither at the service nor on this machine is a usage error', async () => {
  const service = await createCliService()
  await service.run(RUN)
  const line = `run image "a hen" -i run:${newest(service)}`
  expect(usageErrorOf(await service.run(line, { faults: ['output:404'] }))).toContain(
    'it was not downloaded. Nothing was created.',
  )
  expect(service.creates()).toHaveLength(1)
})

it('--sidecar writes what an asset was made from beside it', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  const stdout = outputOf(await service.run(`${RUN} -o ${path} --sidecar --json`))
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
    created_at: expect.stringMatching(/Z$/),
    finished_at: expect.stringMatching(/Z$/),
    elapsed_ms: expect.any(Number),
  })
})

it('a file in the place of the sidecar is a usage error before anything is paid for, or is replaced with --overwrite', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  writeFileSync(`${path}.json`, 'mine')
  usageErrorOf(await service.run(`${RUN} -o ${path} --sidecar`))
  expect({ created: service.creates(), isMade: existsSync(path) }).toEqual({ created: [], isMade: false })
  outputOf(await service.run(`${RUN} -o ${path} --sidecar --overwrite`))
  expect(readFileSync(`${path}.json`, 'utf8')).toContain('"run_id"')
})

it('a named pipe in the place of the sidecar is not opened, whether its name was known before or not', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  execFileSync('mkfifo', [`${path}.json`])
  const message = `${path}.json is not a regular file`
  expect(usageErrorOf(await service.run(`${RUN} -o ${path} --sidecar`))).toContain(message)
  expect(service.creates()).toEqual([])
  const made = await service.run(`${RUN} -o ${path.replace('png', '{ext}')} --sidecar`)
  expect([made.code, made.stderr]).toEqual([12, expect.stringContaining(message)])
})

it.each(['', '-o -'])('--sidecar without a file is a usage error: %j', async (flags) => {
  usageErrorOf(await runCli(`${RUN} --sidecar ${flags}`, { env: SET }))
})
