/** `--engine`: one command, no document, and the real engines against simulated model servers. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { createInterrupts } from '../../src/host/interrupts.js'
import { createNetwork } from '../../src/host/undici.js'
import { readEngineWord, withKeyVariable } from '../../src/service/models/engine-word.js'
import { IMAGE_WORKFLOW } from '../service/engines/comfyui-workflows.js'
import {
  type CommandLine,
  createInstantEngine,
  createManualClock,
  type RunOptions,
  runCli,
  temporaryFolder,
  until,
  whenOver,
} from '../support/index.js'
import { createComfyServer } from '../support/model-servers/comfyui.js'
import { createFalServer, SECRET } from '../support/model-servers/fal.js'
import { createImagesServer } from '../support/model-servers/images.js'
import { pngOf } from '../support/model-servers/pictures.js'
import { createSdcppServer } from '../support/model-servers/sdcpp.js'

/** Command lines of one home, with the real network and a preview renderer that records its runs. */
function createLines() {
  const home = temporaryFolder()
  const clock = createManualClock()
  const network = createNetwork({ env: {}, clock })
  whenOver(() => network.close())
  const preview = createInstantEngine()
  const run = (line: CommandLine, options: RunOptions = {}) =>
    runCli(line, { home, clock, fetch: network.fetch, engine: preview, ...options })
  return { run, preview, clock, file: (name: string) => join(home, name) }
}

it('draws with a model server without a document: its name, and a seed that repeats the picture', async () => {
  const server = await createImagesServer('sdcpp')
  const { run, file, preview } = createLines()
  const engine = `images:${server.url}/v1`
  const made = await run(['run', 'image', '--local', '--engine', engine, 'a red fox', '-o', file('a.png')])
  expect(made).toMatchObject({ code: 0, stdout: `${file('a.png')}\n` })
  expect(made.stderr).toContain(`Model: 127.0.0.1/sd-cpp-local (images at ${server.url}/v1).\n`)
  const wide = ['run', 'image', '--engine', engine, 'a fox', '--aspect-ratio', '16:9', '-o', file('b.png')]
  expect(await run(wide)).toMatchObject({ code: 0 })

  const { input } = JSON.parse((await run('show --last --local --json')).stdout)
  expect(await run([...wide.slice(0, -1), file('c.png'), '--seed', String(input.seed)])).toMatchObject({
    code: 0,
  })
  expect(readFileSync(file('c.png'))).toEqual(readFileSync(file('b.png')))
  expect(preview.jobs).toEqual([])
})

it('draws with stable-diffusion.cpp in its own size, with its parameters from the first command on', async () => {
  const server = await createSdcppServer()
  const { run, file } = createLines()
  const engine = `sdcpp:${server.url}`
  const line = ['run', 'image', '--engine', engine, 'a fox', '--steps', '4', '-o', file('a.png')]
  const made = await run(line)
  expect(made).toMatchObject({ code: 0 })
  expect(made.stderr).toContain(`Model: 127.0.0.1/v1-5 (sdcpp at ${server.url}), 512x512.\n`)
  expect(server.jobs[0]?.fields).toMatchObject({ width: 512, sample_params: { sample_steps: 4 } })
  // The server is asked once, although its parameters are flags of the line.
  expect(server.count('GET /sdcpp/v1/capabilities')).toBe(1)
  expect(await run(`run image --engine ${engine} a --steps 101`)).toMatchObject({ code: 2 })
})

it('renders a run that was interrupted with the flag of the hint, and without it', async () => {
  const server = await createImagesServer('sglang')
  const { run, file, preview } = createLines()
  const engine = `images:${server.url}/v1`
  const name = '127.0.0.1/black-forest-labs/FLUX.1-dev'
  const queued = await run(`run image --engine ${engine} "a hen" --no-wait`)
  const id = queued.stdout.trim()
  expect(queued.stderr).toBe(
    `${id} is queued. Render it with \`rushes wait --local --engine ${engine} ${id}\`.\n`,
  )
  expect(server.count('POST')).toBe(0)
  expect(await run(`status ${id}`)).toMatchObject({ code: 0, stdout: `${id}\tqueued\t\n`, stderr: '' })
  expect(await run(['wait', '--local', '--engine', engine, id, '-o', file('a.png')])).toMatchObject({
    code: 0,
  })

  const interrupts = createInterrupts()
  server.fault('POST', 'hang')
  const waiting = run(`run image --engine ${engine} "a cow" --json`, { interrupts })
  await until('the server draws', () => server.count('POST') === 2)
  interrupts.interrupt('SIGINT')
  const stopped = await waiting
  expect(stopped.code).toBe(130)
  const { run_id: second, hint } = JSON.parse(stopped.stderr.trim().split('\n').at(-1) ?? '').error
  expect(hint).toContain(`Resume with \`rushes wait --local --engine ${engine} ${second}\`.`)
  const done = await run(['wait', second, '-o', file('b.png'), '--json'])
  expect(done.code).toBe(0)
  expect(JSON.parse(done.stdout)).toMatchObject({ id: second, status: 'succeeded', model: name })
  expect(preview.jobs).toEqual([])
})

it('renders each run with the server that it was created for', async () => {
  const server = await createComfyServer()
  const { run, file } = createLines()
  writeFileSync(file('flow.json'), JSON.stringify(IMAGE_WORKFLOW))
  const engine = `comfyui:${server.url}#${file('flow.json')}`
  const other = await createComfyServer()
  const line = ['run', 'image', '--engine', engine, 'a hen', '--no-wait']
  const first = (await run(line)).stdout.trim()
  const elsewhere = line.map((word) => word.replace(server.url, other.url))
  const second = (await run(elsewhere)).stdout.trim()
  const waited = await run(['wait', first, second, '-o', file('{id}.png'), '--json'])
  const models = waited.stdout
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each).model)
  expect([waited.code, models]).toEqual([0, ['127.0.0.1/flow', '127.0.0.1/flow']])
  expect([server.graphs.length, other.graphs.length]).toEqual([1, 1])
})

it('refuses a run without the reference image that the workflow loads before the run exists', async () => {
  const server = await createComfyServer()
  const { run, file } = createLines()
  const loaded = { class_type: 'LoadImage', inputs: { image: 'example.png' } }
  const saved = { class_type: 'SaveImage', inputs: { images: ['8', 0], other: ['10', 0] } }
  writeFileSync(file('flow.json'), JSON.stringify({ ...IMAGE_WORKFLOW, 9: saved, 10: loaded }))
  writeFileSync(file('one.png'), pngOf(8, 8, 'one'))
  writeFileSync(file('two.png'), pngOf(8, 8, 'two'))
  const line = ['run', 'image', '--engine', `comfyui:${server.url}#${file('flow.json')}`, 'a fox']
  const without = await run(line)
  expect(without).toMatchObject({ code: 2, stdout: '' })
  expect(without.stderr).toContain('--image-url is missing.')
  const images = ['-i', file('one.png'), '-i', file('two.png')]
  expect(await run([...line, ...images])).toMatchObject({ code: 2 })
  expect(server.count('POST')).toBe(0)
  expect(await run([...line, ...images.slice(2), '-o', file('a.png')])).toMatchObject({ code: 0 })
})

it('never runs a command of the same name in another folder', async () => {
  const { run, file } = createLines()
  const env = { PATH: process.env.PATH ?? '' }
  const started = process.cwd()
  onTestFinished(() => process.chdir(started))
  for (const name of ['one', 'two']) {
    mkdirSync(file(name))
    const script = `#!/bin/sh\n(printf "\\211PNG\\r\\n\\032\\n"; cat word) > "$RUSHES_OUTPUT_DIR/a.png"\n`
    writeFileSync(file(`${name}/draw.sh`), script, { mode: 0o755 })
    writeFileSync(file(`${name}/word`), name)
  }
  process.chdir(file('one'))
  const id = (await run('run image --engine ./draw.sh a --no-wait', { env })).stdout.trim()
  process.chdir(file('two'))
  expect(await run(['wait', id, '-o', file('a.png')], { env })).toMatchObject({ code: 0 })
  expect(readFileSync(file('a.png'), 'latin1').slice(8)).toBe('one')
})

it('leaves the document of the user that has the same name as it is, in this command and later', async () => {
  const server = await createImagesServer('sglang')
  const { run, file, preview } = createLines()
  const name = '127.0.0.1/black-forest-labs/FLUX.1-dev'
  writeFileSync(file('models.yaml'), stringify({ name, kind: 'image', engine: { type: 'preview' } }))
  await run(['config', 'set', 'local.models', file('models.yaml')])
  const line = ['run', 'image', '--engine', `images:${server.url}/v1`, 'a fox', '-o', file('a.png')]
  const made = await run([...line, '--json'])
  expect(JSON.parse(made.stdout)).toMatchObject({ model: `${name}-2`, status: 'succeeded' })
  expect(server.count('POST')).toBe(1)
  const own = ['run', 'image', '--local', '--model', name, 'a hen', '-o', file('b.png')]
  expect((await run(own)).code).toBe(0)
  expect([server.count('POST'), preview.jobs.length]).toEqual([1, 1])
})

it('a hosted model of --engine has no price in the same command and in later ones, so --max-cost refuses it', async () => {
  const { run } = createLines()
  const env = { FAL_KEY: SECRET }
  const dear = await run('run image --engine fal:acme/draw "a fox" --no-wait', { env })
  const id = dear.stdout.trim()
  expect(dear.code).toBe(0)
  for (const where of [
    ['--engine', 'fal:acme/draw'],
    ['--model', 'acme/draw'],
  ]) {
    const refused = await run(['run', 'image', '--local', ...where, 'a', '--max-cost', '0.01'], { env })
    expect([refused.code, refused.stdout]).toEqual([2, ''])
  }
  expect((await run('list --local')).stdout.trim().split('\n')).toEqual([expect.stringContaining(id)])
})

test('a server that does not listen ends the command before a run exists, also of the previews', async () => {
  const { run } = createLines()
  const { code, stderr } = await run('run image --local --engine images:http://127.0.0.1:1/v1 a')
  expect(code).toBe(9)
  expect(stderr).toContain('Nothing listens at http://127.0.0.1:1. No run was created.')
  expect((await run('list --local')).stdout).toBe('')
})

test('a hosted model has the name that its provider gives it, a prompt alone, and needs its key before a run exists', async () => {
  const { run } = createLines()
  const engine = 'replicate:black-forest-labs/flux-schnell:5599ed30'
  const plan = await run(`run image --engine ${engine} "a fox" --dry-run`)
  expect(plan).toMatchObject({
    code: 0,
    stdout: '{"model":"black-forest-labs/flux-schnell","input":{"prompt":"a fox"}}\n',
    stderr: 'No estimate: black-forest-labs/flux-schnell has no price.\n',
  })
  const refused = await run(`run image --engine ${engine} "a fox"`)
  expect(refused).toMatchObject({ code: 2 })
  expect(refused.stderr).toContain('needs the environment variable REPLICATE_API_TOKEN, which is not set.')
})

it('sends RUSHES_ENGINE_KEY to the server, keeps it nowhere, and asks for it before a run exists', async () => {
  const server = await createImagesServer('omni')
  const { run, file } = createLines()
  const line = ['run', 'image', '--engine', `images:${server.url}/v1`, 'a fox', '-o', file('a.png')]
  const refused = await run(line)
  expect(refused).toMatchObject({ code: 4, stdout: '' })
  expect(refused.stderr).toBe(
    `error: The server at ${server.url} refused access. No run was created.\n  Set its key in RUSHES_ENGINE_KEY.\n`,
  )
  const wrong = await run(line, { env: { RUSHES_ENGINE_KEY: 'sk-wrong' } })
  expect(wrong).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('Check the key in RUSHES_ENGINE_KEY'),
  })
  expect(server.count('POST')).toBe(0)
  const made = await run(line, { env: { RUSHES_ENGINE_KEY: 'omni-secret-key' } })
  expect(made).toMatchObject({ code: 0 })
  const kept = readdirSync(file('state/local')).filter((name) => name.startsWith('service.db'))
  const texts = kept.map((name) => readFileSync(file(`state/local/${name}`), 'latin1')).join('')
  expect(texts).toContain('"key_env":"RUSHES_ENGINE_KEY"')
  expect(made.stderr + texts).not.toContain('omni-secret-key')
})

test.each<[word: string, engine: object]>([
  ['images:http://127.0.0.1:1234/v1', { type: 'images', url: 'http://127.0.0.1:1234/v1' }],
  ['images:http://h:8080/v1#flux.1-dev', { type: 'images', url: 'http://h:8080/v1', model: 'flux.1-dev' }],
  ['comfyui:http://h:8188#a/flow.json', { type: 'comfyui', url: 'http://h:8188', workflow: 'a/flow.json' }],
  ['sdcpp:http://h', { type: 'sdcpp', url: 'http://h' }],
  ['videos:http://h/v1', { type: 'videos', url: 'http://h/v1' }],
  ['fal:fal-ai/flux/dev', { type: 'fal', model: 'fal-ai/flux/dev' }],
  ['replicate:owner/name:5c7d', { type: 'replicate', model: 'owner/name:5c7d' }],
  ['./my-model.sh --fast', { type: 'command', command: './my-model.sh --fast' }],
  ['python3 still.py', { type: 'command', command: 'python3 still.py' }],
  ['python: still.py', { type: 'command', command: 'python: still.py' }],
])('the engine %s is read', (word, engine) => expect(readEngineWord(word, '--engine ')).toEqual(engine))

test.each<[word: string, env: Readonly<Record<string, string>>, variable: string | undefined]>([
  ['images:http://h:8080/v1', {}, undefined],
  ['images:http://h:8080/v1', { RUSHES_ENGINE_KEY: ' ' }, undefined],
  ['images:http://h:8080/v1', { RUSHES_ENGINE_KEY: 'k', OPENAI_API_KEY: 'k' }, 'RUSHES_ENGINE_KEY'],
  ['images:http://api.openai.com.example.com/v1', { OPENAI_API_KEY: 'k' }, undefined],
  ['images:https://api.openai.com/v1', { RUSHES_ENGINE_KEY: 'k' }, 'OPENAI_API_KEY'],
  ['fal:fal-ai/flux/dev', { RUSHES_ENGINE_KEY: 'k' }, undefined],
  ['./my-model.sh', { RUSHES_ENGINE_KEY: 'k' }, undefined],
])('the key of the engine %s with %j is in the variable %s', (word, env, variable) =>
  expect(withKeyVariable(readEngineWord(word, '--engine '), env).key_env).toBe(variable),
)

test.each([
  ['images', 'Example: --engine images:http://127.0.0.1:1234/v1'],
  ['images:127.0.0.1:1234', 'Example: --engine images:http://127.0.0.1:1234/v1'],
  ['replicate:flux', 'Example: --engine replicate:black-forest-labs/flux-schnell'],
  ['replicat:a/b', 'replicat:…: unknown type of engine "replicat". Did you mean replicate:?'],
  ['imagess:http://127.0.0.1:1234/v1', 'Did you mean "images"?'],
  ['http://127.0.0.1:1234/v1', 'Examples: images:http://127.0.0.1:1234/v1'],
  ['./no-such-file.sh', 'Example: --engine ./my-model.sh'],
  ['', 'Example: --engine images:http://127.0.0.1:1234/v1'],
])('the engine "%s" is a usage error with an example, before anything is sent', async (word, example) => {
  const { code, stderr } = await runCli(['run', 'image', '--local', '--engine', word, 'a fox'], {
    engine: createInstantEngine(),
  })
  expect(code).toBe(2)
  expect(stderr).toContain(example)
})

it('a cancel ends when the job of the run at its provider is canceled: the service ends with the command', async () => {
  const { run, file } = createLines()
  const server = await createFalServer({ queued: 1e9 })
  const engine = { type: 'fal', model: 'acme/draw', url: server.url, key_env: 'FAL_KEY' }
  const document = { name: 'acme/draw', kind: 'image', engine, input: { image_urls: false } }
  writeFileSync(file('models.yaml'), stringify(document))
  await run(['config', 'set', 'local.models', file('models.yaml')])
  const env = { FAL_KEY: SECRET }
  const interrupts = createInterrupts()
  const line = ['run', 'image', '--local', '--model', 'acme/draw', 'a fox', '--json']
  const waiting = run(line, { env, interrupts })
  await until('the job is polled', () => (server.jobs[0]?.polls ?? 0) > 1)
  interrupts.interrupt('SIGINT')
  const { run_id: id } = JSON.parse((await waiting).stderr.trim().split('\n').at(-1) ?? '').error
  expect(server.canceled).toEqual([])
  // Without the key, nothing is asked, and the run is not given up.
  for (const command of ['cancel', 'wait']) {
    const keyless = await run(`${command} --local ${id}`)
    expect([keyless.code, keyless.stderr]).toEqual([2, expect.stringContaining('FAL_KEY')])
  }
  // Nor is another run of the same line canceled.
  const free = (await run('run image --local "a hen" --no-wait')).stdout.trim()
  expect((await run(`cancel --local ${free} ${id}`)).code).toBe(2)
  expect((await run(`status --local ${free}`)).stdout).toBe(`${free}\tqueued\t\n`)
  // The run carries its model, whatever the setting says now.
  const replaced = { name: 'acme/draw', kind: 'image', engine: { type: 'preview' } }
  writeFileSync(file('models.yaml'), stringify(replaced))
  expect(server.canceled).toEqual([])
  const canceled = await run(`cancel --local ${id}`, { env })
  expect(canceled).toMatchObject({ code: 0, stdout: `${id}\tcanceled\t\n` })
  expect(server.canceled).toEqual(['fal_1'])
  const shown = JSON.parse((await run(`status ${id} --json`)).stdout)
  expect(shown.service.error.code).toBe('canceled')
})
