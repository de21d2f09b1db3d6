/** `--engine`: one command, no document, and the real engines against simulated model servers. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, it, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { createInterrupts } from '../../src/host/interrupts.js'
import { readEngineWord } from '../../src/service/models/engine-word.js'
import { IMAGE_WORKFLOW } from '../service/engines/comfyui-workflows.js'
import {
  createInstantEngine,
  createLocalHome,
  lines,
  objects,
  outputOf,
  runCli,
  until,
  usageErrorOf,
} from '../support/index.js'
import { createComfyServer } from '../support/model-servers/comfyui.js'
import { createFalServer, SECRET } from '../support/model-servers/fal.js'
import { createImagesServer } from '../support/model-servers/images.js'
import { pngOf } from '../support/model-servers/pictures.js'
import { createSdcppServer } from '../support/model-servers/sdcpp.js'

it('--engine draws with a model server without a document, names its model, and repeats a picture by its seed', async () => {
  const server = await createImagesServer('sdcpp')
  const { run, file, preview } = createLocalHome()
  const image = `run image --engine images:${server.url}/v1 "a red fox" --aspect-ratio 16:9`
  const made = await run(`${image} --local -o ${file('a.png')}`)
  expect(made).toMatchObject({ code: 0, stdout: `${file('a.png')}\n` })
  expect(made.stderr).toContain('Model: 127.0.0.1/images.\n')
  const { input } = JSON.parse(outputOf(await run('show --last --local --json')))
  outputOf(await run(`${image} --seed ${input.seed} -o ${file('b.png')}`))
  expect(readFileSync(file('b.png'))).toEqual(readFileSync(file('a.png')))
  expect(preview.jobs).toEqual([])
})

it('--engine draws with stable-diffusion.cpp, with its parameters from the first command on', async () => {
  const server = await createSdcppServer()
  const { run, file } = createLocalHome()
  const engine = `sdcpp:${server.url}`
  const made = await run(`run image --engine ${engine} "a fox" --seed 4 -o ${file('a.png')}`)
  expect(made).toMatchObject({ code: 0 })
  expect(made.stderr).toContain('Model: 127.0.0.1/sdcpp.\n')
  expect(server.jobs[0]?.fields).toMatchObject({ width: 1024, seed: 4 })
  expect(await run(`run image --engine ${engine} a --seed -1`)).toMatchObject({ code: 2 })
})

const FLUX = '127.0.0.1/images'

it('wait renders a run of --engine that was queued or interrupted, with --engine and without it', async () => {
  const server = await createImagesServer('sglang')
  const { run, file, preview } = createLocalHome()
  const engine = `images:${server.url}/v1`
  const queued = await run(`run image --engine ${engine} "a hen" --no-wait`)
  const id = queued.stdout.trim()
  expect(queued.stderr).toBe(
    `${id} is queued. Render it with \`rushes wait --local --engine 'image=${engine}' ${id}\`.\n`,
  )
  expect(server.count('POST')).toBe(0)
  expect(await run(`status ${id}`)).toMatchObject({ code: 0, stdout: `${id}\tqueued\t\n`, stderr: '' })
  outputOf(await run(`wait --local --engine ${engine} ${id} -o ${file('a.png')}`))

  const interrupts = createInterrupts()
  server.fault('POST', 'hang')
  const waiting = run(`run image --engine ${engine} "a cow" --json`, { interrupts })
  await until('the server draws', () => server.count('POST') === 2)
  interrupts.interrupt('SIGINT')
  const stopped = await waiting
  expect(stopped.code).toBe(130)
  const { run_id: second, hint } = objects(stopped.stderr).at(-1).error
  expect(hint).toContain(`Resume with \`rushes wait --local --engine 'image=${engine}' ${second}\`.`)
  const done = await run(`wait ${second} -o ${file('b.png')} --json`)
  expect(done.code).toBe(0)
  expect(JSON.parse(done.stdout)).toMatchObject({ id: second, status: 'succeeded', model: FLUX })
  expect(preview.jobs).toEqual([])
})

it('each run of --engine is rendered by the server that it was created for', async () => {
  const servers = [await createComfyServer(), await createComfyServer()]
  const { run, file } = createLocalHome()
  writeFileSync(file('my flow (1).json'), JSON.stringify(IMAGE_WORKFLOW))
  for (const { url } of servers)
    await run(`run image --engine "comfyui:${url}#${file('my flow (1).json')}" "a hen" --no-wait`)
  const waited = await run(`wait --all --local -o ${file('{id}.png')} --json`)
  const models = objects(waited.stdout).map(({ model }) => model)
  expect([waited.code, models]).toEqual([0, ['127.0.0.1/my-flow-(1)', '127.0.0.1/my-flow-(1)']])
  expect(servers.map(({ graphs }) => graphs.length)).toEqual([1, 1])
})

it('a run without the reference image that its workflow loads is refused before it exists', async () => {
  const server = await createComfyServer()
  const { run, file } = createLocalHome()
  const loaded = { class_type: 'LoadImage', inputs: { image: 'example.png' } }
  const saved = { class_type: 'SaveImage', inputs: { images: ['8', 0], other: ['10', 0] } }
  writeFileSync(file('flow.json'), JSON.stringify({ ...IMAGE_WORKFLOW, 9: saved, 10: loaded }))
  writeFileSync(file('one.png'), pngOf(8, 8, 'one'))
  writeFileSync(file('two.png'), pngOf(8, 8, 'two'))
  const line = `run image --engine comfyui:${server.url}#${file('flow.json')} "a fox" -o ${file('a.png')}`
  expect(usageErrorOf(await run(line))).toContain('--image-url is missing.')
  usageErrorOf(await run(`${line} -i ${file('one.png')} -i ${file('two.png')}`))
  expect(server.count('POST')).toBe(0)
  outputOf(await run(`${line} -i ${file('two.png')}`))
})

it('a command of --engine is not replaced by one of the same name in another folder', async () => {
  const { run, file } = createLocalHome()
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
  const id = outputOf(await run('run image --engine ./draw.sh a --no-wait', { env })).trim()
  process.chdir(file('two'))
  outputOf(await run(`wait ${id} -o ${file('a.png')}`, { env }))
  expect(readFileSync(file('a.png'), 'latin1').slice(8)).toBe('one')
})

it("a model of --engine does not replace the user's model of the same name", async () => {
  const server = await createImagesServer('sglang')
  const { run, file } = createLocalHome()
  writeFileSync(file('models.yaml'), stringify({ name: FLUX, kind: 'image', engine: { type: 'preview' } }))
  await run(`config set local.models ${file('models.yaml')}`)
  const refused = await run(`run image --engine images:${server.url}/v1 "a fox"`)
  expect(usageErrorOf(refused)).toContain(`${FLUX} is the name of two models.`)
  outputOf(await run(`run image --local --model ${FLUX} "a hen" -o ${file('b.png')}`))
  expect(server.count('POST')).toBe(0)
})

it('a hosted model of --engine has no price in the same command and in later ones, so --max-cost refuses it', async () => {
  const { run } = createLocalHome({ FAL_KEY: SECRET })
  outputOf(await run('run image --engine fal:acme/draw "a fox" --no-wait'))
  for (const model of ['--engine fal:acme/draw', '--model acme/draw'])
    usageErrorOf(await run(`run image --local ${model} a --max-cost 0.01`))
  expect(lines(outputOf(await run('list --local')))).toHaveLength(1)
})

test('a server of --engine that does not listen ends the command before a run exists', async () => {
  const { run } = createLocalHome()
  const { code, stderr } = await run('run image --local --engine images:http://127.0.0.1:1/v1 a')
  expect(code).toBe(9)
  expect(stderr).toContain('Nothing listens at http://127.0.0.1:1. No run was created.')
  expect(outputOf(await run('list --local'))).toBe('')
})

test('a hosted model of --engine has the name that its provider gives it, a prompt alone, and needs its key before a run exists', async () => {
  const { run } = createLocalHome()
  const engine = 'replicate:black-forest-labs/flux-schnell:5599ed30'
  const plan = await run(`run image --engine ${engine} "a fox" --dry-run`)
  expect(plan).toMatchObject({
    code: 0,
    stdout: '{"model":"black-forest-labs/flux-schnell","input":{"prompt":"a fox"}}\n',
    stderr: 'No estimate: black-forest-labs/flux-schnell has no price.\n',
  })
  expect(usageErrorOf(await run(`run image --engine ${engine} "a fox"`))).toContain(
    'needs the environment variable REPLICATE_API_TOKEN, which is not set.',
  )
})

test.each([
  ['images:http://127.0.0.1:1/v1#flux.1-dev', '127.0.0.1/flux.1-dev'],
  ['videos:http://127.0.0.1:1/v1', '127.0.0.1/videos'],
  ['sdapi:http://127.0.0.1:1#flux1 dev [a1b2]', '127.0.0.1/flux1-dev-[a1b2]'],
  ['python still.py', 'command/python'],
])('the model of --engine %s is called %s, and --dry-run asks no server', async (word, name) => {
  const { run } = createLocalHome()
  const kind = word.startsWith('videos') ? 'video' : 'image'
  const plan = outputOf(await run(['run', kind, 'a fox', '--engine', word, '--dry-run']))
  expect(JSON.parse(plan).model).toBe(name)
})

test.each<[word: string, engine: object]>([
  ['images:http://127.0.0.1:1234/v1', { type: 'images', url: 'http://127.0.0.1:1234/v1' }],
  ['images:http://h:8080/v1#flux.1-dev', { type: 'images', url: 'http://h:8080/v1', model: 'flux.1-dev' }],
  ['comfyui:http://h:8188#a/flow.json', { type: 'comfyui', url: 'http://h:8188', workflow: 'a/flow.json' }],
  ['sdcpp:http://h', { type: 'sdcpp', url: 'http://h' }],
  ['fal:fal-ai/flux/dev', { type: 'fal', model: 'fal-ai/flux/dev' }],
  ['replicate:owner/name:5c7d', { type: 'replicate', model: 'owner/name:5c7d' }],
  ['./my-model.sh --fast', { type: 'command', command: './my-model.sh --fast' }],
  ['python: still.py', { type: 'command', command: 'python: still.py' }],
])('--engine %s is %j', (word, engine) => expect(readEngineWord(word, '--engine ')).toEqual(engine))

test.each([
  ['images', 'Example: --engine images:http://127.0.0.1:1234/v1'],
  ['images:127.0.0.1:1234', 'Example: --engine images:http://127.0.0.1:1234/v1'],
  ['replicate:flux', 'Example: --engine replicate:black-forest-labs/flux-schnell'],
  ['imagess:http://127.0.0.1:1234/v1', 'Did you mean "images"?'],
  ['http://127.0.0.1:1234/v1', 'Examples: images:http://127.0.0.1:1234/v1'],
  ['./no-such-file.sh', 'Example: --engine ./my-model.sh'],
  ['', 'Example: --engine images:http://127.0.0.1:1234/v1'],
  ['images:http://[', 'Example: --engine images'],
])('--engine "%s" is a usage error with an example', async (word, example) => {
  const engine = createInstantEngine()
  const ran = await runCli(['run', 'image', '--local', '--engine', word, 'a fox'], { engine })
  expect(usageErrorOf(ran)).toContain(example)
})

it('cancel --local ends when the job of the run at its provider is canceled', async () => {
  const { run, file } = createLocalHome()
  const server = await createFalServer({ queued: 1e9 })
  const engine = { type: 'fal', model: 'acme/draw', url: server.url, key_env: 'FAL_KEY' }
  const document = { name: 'acme/draw', kind: 'image', engine, input: { image_urls: false } }
  writeFileSync(file('models.yaml'), stringify(document))
  await run(`config set local.models ${file('models.yaml')}`)
  const env = { FAL_KEY: SECRET }
  const interrupts = createInterrupts()
  const waiting = run('run image --local --model acme/draw "a fox" --json', { env, interrupts })
  await until('the job is polled', () => (server.jobs[0]?.polls ?? 0) > 1)
  interrupts.interrupt('SIGINT')
  const { run_id: id } = objects((await waiting).stderr).at(-1).error
  expect(server.canceled).toEqual([])
  // Without the key, no run of the line is canceled.
  const free = outputOf(await run('run image --local "a hen" --no-wait')).trim()
  for (const command of ['wait', `cancel ${free}`])
    expect(usageErrorOf(await run(`${command} --local ${id}`))).toContain('FAL_KEY')
  expect(outputOf(await run(`status --local ${free}`))).toBe(`${free}\tqueued\t\n`)
  // The run carries its model, whatever the setting says now.
  const replaced = { name: 'acme/draw', kind: 'image', engine: { type: 'preview' } }
  writeFileSync(file('models.yaml'), stringify(replaced))
  const canceled = await run(`cancel --local ${id}`, { env })
  expect(canceled).toMatchObject({ code: 0, stdout: `${id}\tcanceled\t\n` })
  expect(server.canceled).toEqual(['fal_1'])
  const shown = JSON.parse(outputOf(await run(`status ${id} --json`)))
  expect(shown.service.error.code).toBe('canceled')
})
