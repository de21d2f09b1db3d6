/**
 * The library as another project has it: the packed tarball is unpacked into its node_modules, beside what the package
 * says that it needs and nothing else.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createPlace, filesBelow, type Service, serve, start } from '../support/index.js'
import { ROOT, read } from '../support/project.js'

const TSC = createRequire(import.meta.url)
  .resolve('typescript/package.json')
  .replace(/package\.json$/, 'bin/tsc')

const TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    // Checks the types of the library too, and that declarations can name them.
    skipLibCheck: false,
    declaration: true,
    rootDir: '.',
    outDir: 'out',
  },
  include: ['*.mts'],
}

/** A program that uses what the library exports. It prints one line of JSON. */
const PROGRAM = `
import { createClient, EXIT, HttpFailure, KINDS, MODEL_INPUTS, OWN_CODES, PROBLEMS, RushesError } from 'rushes'
import type { Client, CreateClientOptions, Fetch, ImageInput, OwnCode, Phase, ProblemCode, RunState, VideoInput, WaitOptions } from 'rushes'
export const still = { prompt: 'a fox', aspect_ratio: '16:9', quality: 'high', image_urls: [] } satisfies ImageInput
export const film: VideoInput = { prompt: 'it runs', duration: '10', resolution: '1080p' }
export const code: OwnCode | ProblemCode = 'RATE_LIMITED'
export const values = [EXIT.outcomeUnknown, KINDS, MODEL_INPUTS.image.required, OWN_CODES.usage.exit, PROBLEMS.RATE_LIMITED.status]
export const broken: Fetch = async () => { throw new HttpFailure('no', { sent: false }) }
export const made: (options: CreateClientOptions) => Client = createClient
export const waiting: WaitOptions = { timeoutMs: 60_000, onTrouble: (error) => console.error(error.code) }

const { RUSHES_BASE_URL: baseUrl = '', RUSHES_API_KEY: apiKey = '' } = process.env
const client = createClient({ baseUrl, apiKey })
const { id } = await client.create({ model: 'rushes/preview-image', input: { prompt: 'a fox' } })
const phases: Phase[] = []
for await (const { phase } of client.states(id)) phases.push(phase)
const run: RunState = await client.wait(id, waiting)
const [file] = await client.download(run, { folder: 'made' })
const refused = await client.get('run_none').catch((error: unknown) => error)
if (!(refused instanceof RushesError)) throw new Error('no error')
await client.close()
console.log(JSON.stringify({ phases, path: file?.path, refused: refused.code, exit: refused.exitCode }))
`

/** Modules that must not compile, with the expected error. */
const WRONG: readonly (readonly [string, RegExp])[] = [
  [
    `import type { VideoInput } from 'rushes'\nexport const a: VideoInput = { prompt: 'x', duration: '7' }`,
    /'"7"' is not assignable/,
  ],
  [
    `import type { ImageInput } from 'rushes'\nexport const a: ImageInput = { quality: 'high' }`,
    /'prompt' is missing/,
  ],
  [`import { createClient } from 'rushes'\ncreateClient({ baseUrl: 'x' })`, /'apiKey' is missing/],
  [`import { createApiClient } from 'rushes'\ncreateApiClient`, /no exported member/],
  [`import 'rushes/dist/rushes.js'`, /Cannot find module|not exported|side-effect import/],
]

const project = mkdtempSync(join(tmpdir(), 'rushes-consumer-'))
const modules = join(project, 'node_modules')
const unpacked = join(modules, 'rushes')
let service: Service
let packed: readonly string[]

beforeAll(async () => {
  const out = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ filename }] = JSON.parse(out) as [{ filename: string }]
  mkdirSync(unpacked, { recursive: true })
  execFileSync('tar', ['-xzf', join(project, filename), '-C', unpacked, '--strip-components=1'])
  packed = filesBelow(unpacked)
  const { dependencies } = JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), '@types/node']) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  service = await serve(createPlace())
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

const node = (words: readonly string[]) =>
  start({ ...service, folder: project }, words, { command: process.execPath, stdin: 'ignore' }).ended

it('the package contains only the program, its types, docs, examples and skill', () => {
  const top = new Set(packed.map((path) => path.split('/')[0]))
  expect([...top].sort()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'bin',
    'dist',
    'docs',
    'examples',
    'package.json',
    'skills',
  ])
  const odd = packed.filter(
    (path) =>
      !/^(LICENSE|package\.json|bin\/rushes\.cjs|[A-Z]+\.md|docs\/.*\.(md|json)|examples\/\w+\/[\w-]+\.(yaml|csv|png)|skills\/rushes\/SKILL\.md|dist\/[\w-]+\.c?js|dist\/parts\/[\w-]+\.(ttf|cjs)|dist\/console\/(console|htmx|icon)\.(js|css|svg)|dist\/third-party-licenses\.txt|dist\/types\/.*\.d\.ts)$/.test(
        path,
      ),
  )
  expect(odd).toEqual([])
  const bytes = packed.reduce((sum, path) => sum + readFileSync(join(unpacked, path)).byteLength, 0)
  expect(bytes).toBeLessThan(8.75 * 1024 ** 2)
})

it('the package refers to no file of this machine and no source map', () => {
  const texts = packed
    .filter((path) => /\.(js|ts)$/.test(path))
    .map((path) => [path, readFileSync(join(unpacked, path), 'utf8')] as const)
  expect(texts.filter(([, text]) => text.includes(ROOT.replace(/\/$/, ''))).map(([path]) => path)).toEqual([])
  expect(texts.filter(([, text]) => /sourceMappingURL=/.test(text)).map(([path]) => path)).toEqual([])
})

it('the package runs as a command', async () => {
  const { code, stdout } = await node([join(unpacked, 'bin', 'rushes.cjs'), '--version'])
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: `${JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')).version}\n`,
  })
})

/** Compiles modules, by their names, in a folder of the project. Returns what the compiler says. */
function compile(folder: string, modules: Readonly<Record<string, string>>): string {
  mkdirSync(join(project, folder))
  writeFileSync(join(project, folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  for (const [name, text] of Object.entries(modules))
    writeFileSync(join(project, folder, `${name}.mts`), text)
  const words = [TSC, '-p', join(project, folder)]
  return spawnSync(process.execPath, words, { encoding: 'utf8' }).stdout
}

it('a TypeScript program compiles strictly, with the types of the library checked, and creates, watches, waits and downloads', async () => {
  expect(compile('program', { main: PROGRAM })).toBe('')
  const { code, stdout, stderr } = await node([join(project, 'program/out/main.mjs')])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const said = JSON.parse(stdout)
  expect(said).toMatchObject({
    phases: expect.arrayContaining(['succeeded']),
    refused: 'run_not_found',
    exit: 6,
  })
  expect(readFileSync(join(project, said.path)).subarray(1, 4).toString()).toBe('PNG')
})

it('a TypeScript program gets compile errors for invalid inputs, options and names', () => {
  const said = compile('wrong', Object.fromEntries(WRONG.map(([text], at) => [`wrong-${at}`, text])))
  for (const [, error] of WRONG) expect(said).toMatch(error)
})

it('the examples of docs/library.md compile', () => {
  const [first = '', second = ''] = [...read('docs/library.md').matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(
    ([, block]) => block,
  )
  expect(second).toContain('client.states(id)')
  const further = `import type { Client } from 'rushes'\nexport async function f(client: Client, id: string) {\n${second}}\n`
  expect(compile('examples', { first, further })).toBe('')
})
