/**
 * The library as another project has it: the packed tarball is unpacked into its node_modules, beside what the package
 * says that it needs and nothing else.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPlace, filesBelow, type Place, type Service, serve, start } from '../support/binary.js'
import { CONSUMERS, TSCONFIG } from '../support/consumers.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TSC = createRequire(import.meta.url)
  .resolve('typescript/package.json')
  .replace(/package\.json$/, 'bin/tsc')

const project = mkdtempSync(join(tmpdir(), 'rushes-consumer-'))
const modules = join(project, 'node_modules')
const unpacked = join(modules, 'rushes')
let service: Service & Place
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
  for (const { file, text } of CONSUMERS) {
    mkdirSync(dirname(join(project, file)), { recursive: true })
    writeFileSync(join(project, file), text)
  }
  service = await serve(createPlace())
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

const node = (words: readonly string[]) =>
  start({ ...service, folder: project }, words, { command: process.execPath, stdin: 'ignore' }).ended

describe('the package', () => {
  it('contains only the program, its types, docs, examples and skill', () => {
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

  it('refers to no file of this machine and no source map', () => {
    const texts = packed
      .filter((path) => /\.(js|ts)$/.test(path))
      .map((path) => [path, readFileSync(join(unpacked, path), 'utf8')] as const)
    expect(texts.filter(([, text]) => text.includes(ROOT.replace(/\/$/, ''))).map(([path]) => path)).toEqual(
      [],
    )
    expect(texts.filter(([, text]) => /sourceMappingURL=/.test(text)).map(([path]) => path)).toEqual([])
  })

  it('runs as a command', async () => {
    const { code, stdout } = await node([join(unpacked, 'bin', 'rushes.cjs'), '--version'])
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `${JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')).version}\n`,
    })
  })
})

describe.each(CONSUMERS)('$name', ({ folder, compiled, wrong }) => {
  it('compiles, strictly and with the types of the library checked', () => {
    writeFileSync(join(project, folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
    execFileSync(process.execPath, [TSC, '-p', join(project, folder)], { stdio: 'pipe' })
  })

  it('creates, watches, waits and downloads', async () => {
    const { code, stdout, stderr } = await node([join(project, compiled)])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const said = JSON.parse(stdout)
    expect(said).toMatchObject({
      phases: expect.arrayContaining(['succeeded']),
      refused: 'run_not_found',
      exit: 6,
    })
    expect(readFileSync(join(project, said.path)).subarray(1, 4).toString()).toBe('PNG')
  })

  it('gets compile errors for invalid inputs, options and names', () => {
    for (const [line, said] of wrong) {
      writeFileSync(join(project, folder, 'wrong.ts'), line)
      let output = ''
      try {
        execFileSync(process.execPath, [TSC, '-p', join(project, folder), '--noEmit'], { stdio: 'pipe' })
      } catch (error) {
        output = String((error as { stdout: Buffer }).stdout)
      }
      rmSync(join(project, folder, 'wrong.ts'))
      expect(output).toMatch(said)
    }
  })
})

it('the examples of docs/library.md compile', () => {
  const [first = '', second = ''] = [
    ...readFileSync(join(ROOT, 'docs', 'library.md'), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```$/gm),
  ].map(([, block]) => block)
  expect(second).toContain('client.states(id)')
  const further = `import type { Client } from 'rushes'\nexport async function f(client: Client, id: string) {\n${second}}\n`
  const folder = join(project, 'examples')
  mkdirSync(folder)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  writeFileSync(join(folder, 'first.mts'), first)
  writeFileSync(join(folder, 'second.mts'), further)
  execFileSync(process.execPath, [TSC, '-p', folder], { stdio: 'pipe' })
})
