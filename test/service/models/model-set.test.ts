/** The models of documents and flags together, and the engine that renders all of them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { IMAGE_INPUT } from '../../../src/protocol/models.js'
import type { Engine, RenderJob } from '../../../src/service/engines/engine.js'
import type { EngineParts } from '../../../src/service/engines/settings.js'
import { type ModelSources, openModelSet } from '../../../src/service/models/model-set.js'
import { createManualClock, temporaryFolder } from '../../support/index.js'
import { IMAGE_WORKFLOW } from '../engines/comfyui-workflows.js'

const command = (name: string, kind: string, more = '') =>
  `name: ${name}\nkind: ${kind}\nengine: { type: command, command: 'printf ${name} > "$RUSHES_OUTPUT_DIR/a.txt"' }\n${more}`

function documents(...texts: readonly string[]): string {
  const path = join(temporaryFolder(), 'models.yaml')
  writeFileSync(path, texts.join('---\n'))
  return path
}

const open = (sources: Partial<ModelSources>) => openModelSet({ env: {}, ...sources })
const namesOf = async (sources: Partial<ModelSources>) =>
  (await open(sources)).models.map(({ document }) => document.name)

function previewWith(calls: string[]): EngineParts {
  const preview: Engine = {
    async render({ run, input }) {
      calls.push(`preview ${run?.model} ${JSON.stringify(input)}`)
      return []
    },
    async close() {
      calls.push('close')
    },
  }
  return {
    env: { PATH: process.env.PATH },
    clock: createManualClock(),
    urls: [],
    fetch: async ({ url }) => {
      calls.push(`fetch ${url}`)
      throw new Error('no network')
    },
    preview() {
      calls.push('create')
      return preview
    },
  }
}

const job = (model: string, folder = temporaryFolder()): RenderJob => ({
  kind: 'image',
  run: { id: 'run_1', model },
  input: { prompt: 'a fox' },
  folder,
  references: [],
  signal: new AbortController().signal,
})

describe('the models', () => {
  it('without a setting are the previews', async () =>
    expect(await namesOf({})).toEqual(['rushes/preview-video', 'rushes/preview-image']))

  it('of documents replace the preview of their kind, and keep their limits', async () => {
    const path = documents(command('a/x', 'image', 'concurrency: 2\n'), command('a/y', 'image'))
    expect(await namesOf({ path })).toEqual(['a/x', 'a/y', 'rushes/preview-video'])
    expect((await open({ path })).models.map(({ concurrency }) => concurrency)).toEqual([
      2,
      undefined,
      undefined,
    ])
  })

  it.each([true, false])(
    'of --engine have the parameters for which the engine has a place (renders: %s)',
    async (readsEngines) => {
      const workflow = join(temporaryFolder(), 'flow.json')
      writeFileSync(workflow, JSON.stringify(IMAGE_WORKFLOW))
      const parametersOf = async (image: string) => {
        const { models } = await open({ engines: { image }, readsEngines })
        const model = models.find(({ document }) => document.kind === 'image')
        return Object.keys(model?.document.input.properties ?? {})
      }
      const size = ['prompt', 'aspect_ratio', 'quality']
      expect(await parametersOf(`comfyui:http://127.0.0.1:1#${workflow}`)).toEqual(['prompt', 'seed'])
      expect(await parametersOf('images:http://127.0.0.1:1/v1')).toEqual([...size, 'image_urls', 'seed'])
      expect(await parametersOf('./a.sh')).toEqual(Object.keys(IMAGE_INPUT.properties))
    },
  )

  it.each([
    ['a/x', { engines: { image: './a.sh' } }, /^--engine image=… cannot be used with the image models in /],
    ['rushes/preview-video', {}, /^rushes\/preview-video is the name of two models\.$/],
  ])('a document of images named %s with %o is a usage error', async (name, sources, message) => {
    const path = documents(command(name, 'image'))
    await expect(open({ path, ...sources })).rejects.toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringMatching(message) }),
    )
  })

  it.each([
    ['http://127.0.0.1:1', /the URL of a server needs the type of the engine, such as images:http/],
    ['constructor:http://127.0.0.1:1', /image=constructor:…: type must be one of images, comfyui, /],
    [
      'images:http://127.0.0.1:1/v1#flow.json',
      /image=images:…: "workflow" is not a key of an engine of type images\.$/,
    ],
    [
      'comfyui:http://127.0.0.1:1',
      /image=comfyui:…: workflow is missing\. In ComfyUI, choose Workflow > Export \(API\)/,
    ],
    [
      'comfyui:http://127.0.0.1:1#none.json',
      /workflow names "none.json", which cannot be read: no such file/,
    ],
  ])(
    '--engine image=%s is a usage error',
    async (word, message) => await expect(open({ engines: { image: word } })).rejects.toThrow(message),
  )
})

describe('the model that a run carries', () => {
  it.each([
    'engine: { type: command, command: x, folder: . }\n',
    'engine: { type: fal, model: acme/draw }\ncost: { run: 0.5, currency: USD }\ninput: { image_urls: false }\n',
    'engine: { type: fal, model: acme/draw }\ninput: { image_urls: false, size: { type: object } }\n',
    'engine: { type: images, url: "http://127.0.0.1:1/v1", send: { steps: steps } }\ninput: { seed: false, steps: { type: integer, default: 9007199254740993 } }\n',
    'engine: { type: comfyui, url: "http://127.0.0.1:1", workflow: flow.json, slots: { prompt: 6.inputs.text, steps: 3.inputs.steps } }\nprice: { run: 1.5, factors: { steps: { 4: 0.1 } } }\ninput: { steps: { type: integer, enum: [4] } }\n',
    'engine: { type: preview }\nconcurrency: 3\n',
  ])('is read as it was accepted: %j', async (text) => {
    const path = documents(`name: a/x\nkind: image\n${text}`)
    writeFileSync(join(dirname(path), 'flow.json'), JSON.stringify(IMAGE_WORKFLOW))
    const env = { FAL_KEY: 'k' }
    const {
      models: [model],
    } = await open({ path, env, isCharged: false })
    const { carried, ...served } = model ?? {}
    const other = (await open({})).createEngine({ ...previewWith([]), env })
    const { carried: again, ...read } = (await other.modelOf({ model: '', document: carried?.json })) ?? {}
    expect([read, again]).toEqual([served, carried])
    await other.close?.()
  })

  it('has absolute paths, and never a key', async () => {
    const path = documents(
      'name: a/x\nkind: image\nengine: { type: comfyui, url: "http://127.0.0.1:1", workflow: flow.json, key_env: K }\n',
    )
    writeFileSync(join(dirname(path), 'flow.json'), JSON.stringify(IMAGE_WORKFLOW))
    const { models } = await open({ path, env: { K: 'secret' } })
    const { engine } = JSON.parse(models[0]?.carried?.json ?? '')
    expect(engine).toMatchObject({ workflow: join(dirname(path), 'flow.json'), key_env: 'K' })
    expect(models[0]?.carried?.json).not.toContain('secret')
  })

  it('renders its runs, also if the node has another one of that name, or none', async () => {
    const before = await open({ path: documents(command('a/x', 'image')) })
    const document = before.models[0]?.carried?.json
    for (const path of [
      documents(command('a/y', 'image')),
      documents('name: a/x\nkind: image\nengine: { type: preview }\n'),
    ]) {
      const calls: string[] = []
      const engine = (await open({ path })).createEngine(previewWith(calls))
      const asked = { ...job('a/x'), document }
      expect(await engine.render(asked)).toMatchObject([{ name: 'a.txt' }])
      expect(calls.filter((call) => call.startsWith('preview '))).toEqual([])
      await engine.close?.()
    }
  })

  it('is that of the node where the paths of another node do not exist here', async () => {
    const workflow = join(temporaryFolder(), 'flow.json')
    writeFileSync(workflow, JSON.stringify(IMAGE_WORKFLOW))
    const set = await open({ engines: { image: `comfyui:http://127.0.0.1:1#${workflow}` } })
    const model = set.models.find(({ document }) => document.kind === 'image')
    const elsewhere = model?.carried?.json.replace(workflow, '/nowhere/flow.json')
    const engine = set.createEngine(previewWith([]))
    const run = { model: 'rushes/preview-image', document: elsewhere }
    expect(await engine.modelOf(run)).toMatchObject({ carried: model?.carried, problem: undefined })
    expect(await engine.modelOf({ ...run, model: 'acme/removed' })).toMatchObject({
      problem: 'The engine: workflow names "/nowhere/flow.json", which cannot be read: no such file.',
    })
  })
})

describe('the engine', () => {
  it('renders each run with the engine of its model; the preview is one, and closed once', async () => {
    const path = documents(command('a/x', 'image'), command('a/y', 'image'))
    const calls: string[] = []
    const engine = (await open({ path })).createEngine(previewWith(calls))
    for (const model of ['a/x', 'a/y']) {
      const asked = job(model)
      expect(await engine.render(asked)).toMatchObject([{ name: 'a.txt' }])
      expect(readFileSync(join(asked.folder, 'a.txt'), 'utf8')).toBe(model)
    }
    await engine.render(job('rushes/preview-video'))
    await expect(engine.render(job('a/z'))).rejects.toThrow('does not have the model a/z')
    await engine.close?.()
    expect(calls).toEqual(['create', expect.stringMatching(/^preview rushes\/preview-video /), 'close'])
  })

  it('draws previews of any document: values that it leaves out, or that no preview has, are the default ones', async () => {
    const path = documents(
      'name: a/x\nkind: image\nengine: { type: preview }\ninput: { aspect_ratio: { type: string, default: "3:2" }, quality: false }',
    )
    const calls: string[] = []
    const engine = (await open({ path })).createEngine(previewWith(calls))
    await engine.render({ ...job('a/x'), input: { prompt: 'a fox', aspect_ratio: '3:2' } })
    await engine.render({ ...job('a/x'), input: { aspect_ratio: '9000:1', quality: 4, steps: 2 } })
    expect(calls.slice(1)).toEqual([
      'preview a/x {"prompt":"a fox","aspect_ratio":"3:2","quality":"basic"}',
      'preview a/x {"aspect_ratio":"1:1","quality":"basic","steps":2,"prompt":""}',
    ])
  })
})
