/** Documents of the models of a service: each problem with its place, in YAML and in JSON. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RushesError } from '../../../src/errors.js'
import type { ModelDocument } from '../../../src/protocol/models.js'
import { creditsOf, millionthsOf } from '../../../src/protocol/price.js'
import { ENGINE_TYPES } from '../../../src/service/models/engine-table.js'
import { readModels } from '../../../src/service/models/read-models.js'
import { temporaryFolder } from '../../support/index.js'
import { IMAGE_WORKFLOW } from '../engines/comfyui-workflows.js'

type Files = Readonly<Record<string, string>>

const PREVIEW = 'engine: { type: preview }'
const valid = (name: string, more = ''): string => `name: ${name}\nkind: image\n${PREVIEW}\n${more}`

function folderWith(files: Files): string {
  const folder = join(temporaryFolder(), 'models')
  mkdirSync(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

const read = (files: Files, env = {}, only = '') =>
  readModels({ path: join(folderWith(files), only), env, types: ENGINE_TYPES })

/** The lines of the error, without the folder. */
function problemsOf(files: Files, env?: Record<string, string>, only?: string): readonly string[] {
  try {
    read(files, env, only)
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
    return (error.hint ?? error.message).split('\n').map((line) => line.replace(/^\S*\/models\/?/, ''))
  }
  return []
}

const ONE = 'a.yaml'

describe('a problem is named with its file and its path', () => {
  it.each([
    [
      'a bound',
      valid('a/b', 'input:\n  steps: { type: integer, minimum: 50, maximum: 1 }'),
      'input.steps: minimum 50 is greater than the maximum 1',
    ],
    [
      'a default',
      valid('a/b', 'input:\n  steps:\n    type: integer\n    maximum: 9\n    default: 10'),
      'input.steps: default must be a whole number up to 9, not 10',
    ],
    [
      'an unknown key',
      valid('a/b', 'concurency: 2'),
      '"concurency" is not a key of a model. Did you mean "concurrency"?',
    ],
    ['a name', valid('flux'), 'name must be a model name of the form <provider>/<name>'],
    ['a kind', `kind: sound\nname: a/b\n${PREVIEW}`, 'kind must be video or image'],
    ['a missing kind, at the document', `\n\nname: a/b\n${PREVIEW}`, 'kind must be video or image'],
    [
      'a price',
      valid('a/b', 'price: { run: -1 }'),
      'price: run must be a number from 0 to 1000000000 with at most six decimals',
    ],
    [
      'an unknown key of a price',
      valid('a/b', 'price: { run: 1, factor: { quality: { high: 2 } } }'),
      'price: "factor" is not a key of a price. Did you mean "factors"?',
    ],
    [
      'a factor of no property',
      valid('a/b', 'price:\n  run: 1\n  factors: { steps: { 1: 2 } }'),
      'price.factors: steps is not a property of the input',
    ],
    [
      'a factor of no value',
      valid('a/b', 'price: { run: 1, factors: { quality: { ultra: 2 } } }'),
      'price.factors.quality: "ultra" is not one of basic, high',
    ],
    [
      'a price that no estimate can be exact for',
      valid('a/b', 'price: { run: 9, factors: { quality: { high: 1000000000 } } }'),
      'price leads to more than 1000000000 credits for a run',
    ],
    ['concurrency', valid('a/b', 'concurrency: 65'), 'concurrency must be a whole number from 1 to 64'],
    [
      'a name of a prototype',
      valid('a/b', 'input: { constructor: { type: string } }'),
      'input: "constructor" is not a property name',
    ],
    [
      'a required property that is not there',
      valid('a/b', 'input:\n  type: object\n  properties: {}\n  required:\n    - seed'),
      'input.required: "seed" is not among the properties',
    ],
    ['no engine', 'name: a/b\nkind: image', 'engine is missing. Example: engine: { type: preview }'],
    [
      'a type of engine',
      'name: a/b\nkind: image\nengine: { type: image }',
      `engine: type must be one of ${Object.keys(ENGINE_TYPES).join(', ')}. Did you mean "images"?`,
    ],
    [
      'a type of engine that is not text',
      'name: a/b\nkind: image\nengine: { type: { toString: images } }',
      `engine: type must be one of ${Object.keys(ENGINE_TYPES).join(', ')}.`,
    ],
    [
      'a key of an engine',
      'name: a/b\nkind: image\nengine:\n  type: command\n  command: ./a\n  comand: ./b',
      'engine: "comand" is not a key of an engine of type command. Did you mean "command"?',
    ],
    [
      'a key of another engine',
      valid('a/b').replace('}', ', timeout: 1m }'),
      'engine: "timeout" is not a key of an engine of type preview.',
    ],
    [
      'a missing setting of an engine',
      'name: a/b\nkind: image\nengine: { type: command }',
      'engine: command is missing',
    ],
    [
      'text that is a number',
      'name: a/b\nkind: image\nengine: { type: command, command: 5 }',
      'engine: command must be text: put it in quotes',
    ],
    ['a duplicate key', valid('a/b', 'name: a/c'), 'line 4: the key "name" occurs twice'],
    [
      'YAML',
      'name: [',
      'line 1: flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    [
      'YAML, with one line for an error that leads to others',
      '- a\nb: c\n- d\ne',
      'line 2: unexpected scalar at node end',
    ],
    [
      'an alias',
      valid('a/b', 'price: *none'),
      'line 1: Unresolved alias (the anchor must be set before the alias): none',
    ],
    ['a key that is a list', `${valid('a/b')}? [x]\n: y`, 'line 4: a key must be text'],
    ['no map', '- 5', 'the document is not a map'],
    ['nothing', '# later\n---\n', 'the file has no document'],
    ['nesting', `{a: ${'['.repeat(1_000)}`, 'line 1: the text is nested too deeply'],
    [
      'JSON with tabs',
      '{\n\t"name": "a/b",\n\t"kind": "image",\n\t"engine": { "type": "preview" },\n\t"size": 1\n}',
      '"size" is not a key of a model.',
    ],
    [
      'the second document of a list',
      `- { name: a/b, kind: image, ${PREVIEW} }\n- { name: c, kind: image, ${PREVIEW} }`,
      'document 2: name must be a model name of the form <provider>/<name>',
    ],
    [
      'the second document of a file',
      `${valid('a/b')}---\n${valid('c')}`,
      'document 2: name must be a model name of the form <provider>/<name>',
    ],
    [
      'a name that is used twice',
      `${valid('a/b')}---\n${valid('a/b')}`,
      'document 2: "a/b" is also the name of a model in',
    ],
    [
      'two defaults',
      `${valid('a/b', 'default: true\n')}---\n${valid('a/c', 'default: true')}`,
      'document 2: default is also set by a/b: only one image model can be the default',
    ],
  ])('%s', (_name, text, problem) => {
    expect(problemsOf({ [ONE]: text }).map((line) => line.replace(/ in \/\S*$/, ' in'))).toEqual([
      `${ONE}: ${problem}`,
    ])
  })

  it.each([
    [
      'a default',
      'quality: { type: string, enum: [basic, high], default: basic }',
      'quality: { basic: 2.5, high: 5 }',
    ],
    ['a required value', 'hd: { type: boolean, required: true }', 'hd: { true: 5, false: 2.5 }'],
    ['no price', '', undefined],
  ])('a fractional price of a run that %s makes whole is valid', (_, input, factors) => {
    const price = factors === undefined ? '' : `price: { run: 0.4, factors: { ${factors} } }`
    expect(problemsOf({ [ONE]: valid('a/b', `input: { ${input} }\n${price}`) })).toEqual([])
  })

  it('all problems of all files; other files of the folder are not read', () => {
    const files = {
      'b.yml': 'kind: x\nname: b',
      'a.yaml': valid('a/b', 'default: 1\nx: 2'),
      'flow.json': '{',
      '.c.yaml': ':',
    }
    expect(problemsOf(files).toSorted()).toEqual([
      'a.yaml: "x" is not a key of a model.',
      'a.yaml: default must be true or false',
      'b.yml: engine is missing. Example: engine: { type: preview }',
      'b.yml: kind must be video or image',
      'b.yml: name must be a model name of the form <provider>/<name>',
    ])
  })

  it('a name that is used twice, although an engine has a problem too', () => {
    const text = `${valid('a/b')}---\n${valid('a/b').replace('preview', 'previw')}`
    expect(problemsOf({ [ONE]: text })).toEqual([
      expect.stringContaining('"a/b" is also the name of a model in'),
      expect.stringContaining('type must be one of images'),
    ])
  })

  it('a key that was written into the file is not printed', () => {
    const engine = (keyEnv: string) =>
      `name: a/b\nkind: image\nengine: { type: images, url: http://127.0.0.1:1, key_env: ${keyEnv} }`
    const [shown] = problemsOf({ [ONE]: engine('IMAGES_KEY') })
    expect(shown).toContain('engine: key_env names IMAGES_KEY, which is not set in the environment')
    const [hidden] = problemsOf({ [ONE]: engine('sk_live_abc') })
    expect(hidden).toContain('engine: key_env names a variable that is not set in the environment')
    expect(hidden).not.toContain('sk_live')
    expect(problemsOf({ [ONE]: engine('IMAGES_KEY') }, { IMAGES_KEY: 'sk_live_abc' })).toEqual([])
  })

  it.each([
    ['url: ftp://x', 'url must be an http or https URL'],
    ['url: http://u:p@x', 'url must not contain a user name or a password: use key_env'],
    ['url: http://x?a=1', 'url must not contain a query or a fragment'],
    ['', 'url is missing'],
  ])('the URL of a server: %s', (setting, problem) => {
    const [line] = problemsOf({ [ONE]: `name: a/b\nkind: image\nengine:\n  type: images\n  ${setting}` })
    expect(line).toContain(`engine: ${problem}`)
  })
})

describe('the paths', () => {
  it.each([
    [
      'none.yaml',
      {},
      'Give a file or a folder with --models, or with `rushes config set local.models <path>`.',
    ],
    ['', {}, 'A model is a file that ends with .yaml or .yml. To read a JSON file, name the file itself.'],
    ['big.yaml', { 'big.yaml': ' '.repeat(4_194_305) }, 'big.yaml: the file is larger than 4 MiB'],
  ])('%j', (path, files, message) => expect(problemsOf(files, {}, path)).toEqual([message]))

  it.skipIf(process.platform === 'win32')('what cannot be read to an end, or at all', () => {
    const folder = folderWith({
      'flow.yaml': `name: a/b\nkind: image\nengine: { type: comfyui, url: http://127.0.0.1:1, workflow: b.yaml }`,
    })
    symlinkSync('/dev/zero', join(folder, 'a.yaml'))
    execFileSync('mkfifo', [join(folder, 'b.yaml')])
    mkdirSync(join(folder, 'c.yaml'))
    symlinkSync('none', join(folder, 'd.yaml'))
    const problems = () => readModels({ path: folder, env: {}, types: ENGINE_TYPES })
    const lines = [
      'a.yaml: the file is not a regular file',
      'b.yaml: the file is not a regular file',
      'c.yaml: the file is not a regular file',
      'd.yaml: the file cannot be read: no such file',
      'flow.yaml: engine: workflow names "b.yaml", which is not a regular file',
    ]
    expect(problems).toThrow(
      expect.objectContaining({ hint: lines.map((line) => join(folder, line)).join('\n') }),
    )
  })

  it('a file that is not UTF-8', () => {
    const folder = folderWith({})
    writeFileSync(join(folder, ONE), Buffer.from([0x6e, 0xff]))
    const problems = () => readModels({ path: folder, env: {}, types: ENGINE_TYPES })
    expect(problems).toThrow(`${join(folder, ONE)}: the file is not UTF-8 text`)
  })
})

describe('what is read', () => {
  it('models of several files, by the names of the files; a list, several documents, and JSON', () => {
    const json = JSON.stringify({ name: 'c/d', kind: 'video', engine: { type: 'preview' }, concurrency: 3 })
    const files = {
      '2.yaml': `- &base { name: a/b, kind: image, ${PREVIEW} }\n- { <<: *base, name: a/c }`,
      '1.yml': `${valid('a/y')}---\n${valid('a/z', 'description: Fast')}`,
      'x.json': json,
    }
    expect(read(files).map(({ document }) => document.name)).toEqual(['a/y', 'a/z', 'a/b', 'a/c'])
    expect(read(files)[1]?.document.input.description).toBe('Fast')
    const [one] = read(files, {}, 'x.json')
    expect(one).toMatchObject({ document: { name: 'c/d', kind: 'video' }, concurrency: 3, type: 'preview' })
  })

  it('prices that are rounded up to whole credits, unless nothing is charged', () => {
    const path = folderWith({ [ONE]: valid('a/b', 'price: { run: 0.4 }') })
    const [free] = readModels({ path, env: {}, types: ENGINE_TYPES, isCharged: false })
    expect(millionthsOf(free?.document as ModelDocument, {})).toBe(400_000)
    const [charged] = readModels({ path, env: {}, types: ENGINE_TYPES })
    expect(millionthsOf(charged?.document as ModelDocument, {})).toBe(1_000_000)
    expect(creditsOf(free?.document as ModelDocument, {})).toBe(1)
  })

  it('a workflow without a node for images or for the size, whose parameters the model then does not have', () => {
    const { 5: _size, ...workflow } = IMAGE_WORKFLOW
    const slots = 'slots: { prompt: 6.inputs.text }'
    const engine = `{ type: comfyui, url: http://127.0.0.1:1, workflow: flow.json, ${slots} }`
    const files = (more: string) => ({
      'flow.json': JSON.stringify(workflow),
      [ONE]: `name: a/b\nkind: image\nengine: ${engine}\n${more}`,
    })
    const [model] = read(files('price: { run: 2 }'))
    expect(Object.keys(model?.document.input.properties ?? {})).toEqual(['prompt'])
    const none = 'add it, or remove the property from the input'
    for (const more of [
      'input: { quality: { type: string } }',
      'price: { run: 1, factors: { quality: { high: 2 } } }',
    ])
      expect(problemsOf(files(more)).join().toLowerCase()).toContain(
        `has none for the property "quality". ${none}`,
      )
    const [other] = readModels({
      ...{ path: folderWith({ [ONE]: files('')[ONE] }), env: {}, types: ENGINE_TYPES },
      readsEngines: false,
    })
    expect(Object.keys(other?.document.input.properties ?? {})).toEqual(['prompt'])
  })

  it('the parameter seed of an engine that sends one, unless the document removes it or the server needs a key', () => {
    const seedOf = (engine: string, more = '') => {
      const text = `name: a/b\nkind: image\nengine: { ${engine} }\n${more}`
      const [model] = read({ [ONE]: text }, { KEY: 'sk-0123456789' })
      return model?.document.input.properties.seed
    }
    const SEED = {
      type: 'integer',
      minimum: 0,
      maximum: 2_147_483_647,
      description: 'Seed; random if not set',
    }
    const images = 'type: images, url: http://127.0.0.1:1'
    expect(seedOf(images)).toEqual(SEED)
    expect(seedOf('type: sdapi, url: http://127.0.0.1:1')).toEqual(SEED)
    expect(seedOf(images, 'input: { seed: { type: integer, maximum: 9 } }')).toMatchObject({ maximum: 9 })
    expect(seedOf(images, 'input: { seed: false }')).toBeUndefined()
    expect(seedOf(`${images}, key_env: KEY`)).toBeUndefined()
    expect(seedOf('type: preview')).toEqual(SEED)
    const other = 'input: { start: { type: integer } }'
    expect(seedOf(`${images}, send: { start: seed }`, other)).toBeUndefined()
  })

  it('a node that renders nothing needs neither the files nor the keys of engines', () => {
    const text = 'name: a/b\nkind: image\nengine: { type: comfyui, workflow: none.json, key_env: NONE }'
    const path = folderWith({ [ONE]: text })
    const [model] = readModels({ path, env: {}, types: ENGINE_TYPES, readsEngines: false })
    expect(model?.document.name).toBe('a/b')
    expect(model?.type).toBe('preview')
  })
})
