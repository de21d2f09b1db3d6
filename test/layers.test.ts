/** The architecture is a promise: a file imports from lower ranks and from its own folder, never up, never sideways. */
import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pathsBelow, ROOT, read } from './support/project.js'

/** An entry of `overrides` in biome.json. */
interface Override {
  readonly includes: readonly string[]
  readonly linter: { readonly rules: Readonly<Record<string, Readonly<Record<string, unknown>>>> }
}

/** From the top down; a room is a folder, or a file of `src` itself. */
const RANKS: readonly (readonly string[])[] = [
  ['bin'],
  ['src/cli', 'src/index.ts'],
  // The life of a run: joins client, journal and downloads.
  ['src/runs'],
  [
    'src/client',
    'src/limiter',
    'src/journal',
    'src/download',
    'src/batch',
    'src/service',
    'src/preview',
    'src/gallery',
    'src/console',
  ],
  ['src/host'],
  ['src/protocol', 'src/errors.ts'],
]
const LOWEST = RANKS.length - 1
const ENGINES: readonly string[] = RANKS[3] ?? []

/** Engines are built and joined here; everywhere else they are types, and pure functions. */
const BUILDERS: readonly string[] = [
  'src/cli/context/context.ts',
  'src/cli/context/key-limits.ts',
  'src/cli/context/local-service.ts',
  'src/cli/commands/serve.ts',
  'src/index.ts',
]
/** A counter of names, without I/O: made for each command. */
const PURE_FACTORIES: readonly string[] = [
  'src/cli/runs/carry-out.ts: createNamer',
  // Given the functions that write and send.
  'src/runs/batch.ts: createRowLock',
  'src/runs/batch.ts: createWaitingRows',
]

/** The preview renderer knows the contract of the service's engines, and nothing else of the service. */
const ENGINE_CONTRACT: readonly string[] = ['src/service/engines/engine.ts', 'src/service/engines/host.ts']

interface Import {
  readonly specifier: string
  /** What is said between `import` or `export` and `from`; undefined where the whole module is loaded. */
  readonly clause: string | undefined
}

const IMPORTS = [
  // import a, { type B } from 'c' | export { a } from 'b' | export * as a from 'b'
  /(?:^|[;\n])\s*(?:import|export)\s+(?<clause>(?:type\s+)?(?:[\w$*]+|\{[^}]*\})(?:\s*,?\s*(?:as\s+\w+|\{[^}]*\}|\*\s+as\s+\w+))*)\s*from\s*['"](?<specifier>[^'"]+)['"]/g,
  // import 'a'
  /(?:^|[;\n])\s*import\s*['"](?<specifier>[^'"]+)['"]/g,
  // const { a } = await import('b'), import('b').then(…), import('b').Type, require('b'), new URL('b', import.meta.url)
  /(?:(?<clause>\{[^{}]*\})\s*=\s*await\s+)?\bimport\s*\(\s*['"](?<specifier>[^'"]+)['"]/g,
  /\brequire\s*\(\s*['"](?<specifier>[^'"]+)['"]/g,
]

const importsOf = (text: string): readonly Import[] =>
  IMPORTS.flatMap((form) =>
    [...text.matchAll(form)].map(({ groups }) => ({
      specifier: groups?.specifier ?? '',
      clause: groups?.clause?.replace(/\s+/g, ' '),
    })),
  )

const roomOf = (path: string): string | undefined =>
  RANKS.flat().find((room) => path === room || path.startsWith(`${room}/`))

const rankOf = (room: string): number => RANKS.findIndex((rooms) => rooms.includes(room))

/** What is wrong with an import, or undefined. The words of rank 0 know each other. The OpenAPI document is data. */
function wrongImport(from: string, to: string): string | undefined {
  if (from === 'src/service/openapi.ts' && to === 'docs/openapi.json?raw') return undefined
  if (from === 'src/cli/program.ts' && to === 'skills/rushes/SKILL.md?raw') return undefined
  const [here, there] = [roomOf(from), roomOf(to)]
  if (here === undefined || there === undefined) return `${from} → ${to}: outside the plan`
  if (here === there) return undefined
  if (rankOf(here) < rankOf(there)) return undefined
  if (here === 'src/preview' && ENGINE_CONTRACT.includes(to)) return undefined
  if (rankOf(here) === LOWEST && rankOf(there) === LOWEST) return undefined
  return `${from} → ${to}: ${rankOf(here) === rankOf(there) ? 'sideways' : 'up'}`
}

/** What the build makes of an entry. */
const BUILT: Readonly<Record<string, string>> = {
  'dist/rushes.cjs': 'src/cli/process/start.ts',
  'dist/index.js': 'src/index.ts',
  'dist/renderer.cjs': 'src/preview/renderer.ts',
}

/** The file that an import of our own names; undefined for packages, Node's own modules and the manifest. */
function targetOf(path: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined
  const named = posix.normalize(posix.join(posix.dirname(path), specifier))
  if (named === 'package.json') return undefined
  const source = named.replace(/\.js$/, '.ts')
  return BUILT[named] ?? (isComponent(source) ? `${source}x` : source)
}

const isComponent = (path: string): boolean =>
  !existsSync(join(ROOT, path)) && existsSync(join(ROOT, `${path}x`))

interface Source {
  readonly path: string
  readonly text: string
  readonly imports: readonly Import[]
}

const sourceOf = (path: string, text: string): Source => ({ path, text, imports: importsOf(text) })

const wrongImports = (sources: readonly Source[]): readonly string[] =>
  sources.flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier }) => {
      const target = targetOf(path, specifier)
      return (target === undefined ? undefined : wrongImport(path, target)) ?? []
    }),
  )

const CREATION = /(?<!type )\bcreate[A-Z]\w*/g

/** Engines that are built where they should be handed over. */
const builtOutOfPlace = (sources: readonly Source[]): readonly string[] =>
  sources
    .filter(({ path }) => !ENGINES.includes(roomOf(path) ?? '') && !BUILDERS.includes(path))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ specifier }) => ENGINES.includes(roomOf(targetOf(path, specifier) ?? '') ?? ''))
        .filter(({ clause }) => clause?.startsWith('type ') !== true)
        .flatMap(({ clause }) => [...(clause ?? '').matchAll(CREATION)].map(([name]) => `${path}: ${name}`)),
    )

const SOURCES = ['src', 'bin']
  .flatMap((folder) => pathsBelow(folder, /\.[cm]?[jt]sx?$/))
  .map((path) => sourceOf(path, read(path)))

describe('the check of the ranks', () => {
  it.each([
    ['src/client/fetch-status.ts', 'src/host/http.ts', undefined],
    ['src/client/fetch-status.ts', 'src/client/follow.ts', undefined],
    ['src/protocol/problems.ts', 'src/errors.ts', undefined],
    ['src/cli/commands/run.ts', 'src/protocol/models.ts', undefined],
    ['bin/rushes.cjs', 'src/cli/process/start.ts', undefined],
    ['src/preview/index.ts', 'src/service/engines/engine.ts', undefined],
    ['src/preview/index.ts', 'src/service/endpoints.ts', 'sideways'],
    ['src/console/api.ts', 'src/service/endpoints.ts', 'sideways'],
    ['src/console/api.ts', 'src/host/http.ts', undefined],
    ['src/client/fetch-status.ts', 'src/download/index.ts', 'sideways'],
    ['src/index.ts', 'src/cli/main.ts', 'sideways'],
    ['src/host/http.ts', 'src/client/index.ts', 'up'],
    ['src/service/index.ts', 'src/cli/main.ts', 'up'],
    ['src/protocol/run-state.ts', 'src/host/clock.ts', 'up'],
    ['src/cli/main.ts', 'src/extra/x.ts', 'outside the plan'],
    ['src/cli/main.ts', 'test/support/clock.ts', 'outside the plan'],
    ['src/service/openapi.ts', 'docs/openapi.json?raw', undefined],
    ['src/cli/main.ts', 'docs/openapi.json?raw', 'outside the plan'],
  ])('%s → %s', (from, to, wrong) => {
    const found = wrongImport(from, to)
    if (wrong === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(wrong)
  })

  it.each([
    `import a from './x.js'`,
    `import './x.js'`,
    `import * as a from './x.js'`,
    `import a, { b } from './x.js'`,
    `import {\n  a,\n  type B,\n} from './x.js'`,
    `import type { A } from './x.js'`,
    `export * from './x.js'`,
    `export * as a from './x.js'`,
    `export { a } from './x.js'`,
    `export type { A } from './x.js'`,
    `const { a } = await import('./x.js')`,
    `const load = () => import('./x.js')`,
    `const both = Promise.all([\n  import(\n'./x.js'\n),\n])`,
    `let a: import('./x.js').A`,
    `const a = require("./x.js")`,
  ])('reads %j', (text) =>
    expect(importsOf(`/** A file. */\n${text}\n`).map(({ specifier }) => specifier)).toEqual(['./x.js']),
  )

  it('finds a broken rank in a file, and an engine built out of place', () => {
    const broken = Object.entries({
      'src/limiter/index.ts': `import type { Client } from '../client/index.js'`,
      'src/host/clock.ts': `const a = await import('../cli/main.js')`,
      'bin/rushes.cjs': `require('../dist/rushes.cjs')`,
      'src/cli/commands/wait.ts': `import { createApiClient, type Client } from '../../client/index.js'`,
      'src/cli/commands/run.ts': `import type { createLimiter } from '../../limiter/index.js'`,
      'src/cli/runs/x.ts': `const { createDownloader } = await import('../../download/index.js')`,
    }).map(([path, text]) => sourceOf(path, text))
    expect(wrongImports(broken)).toEqual([
      'src/limiter/index.ts → src/client/index.ts: sideways',
      'src/host/clock.ts → src/cli/main.ts: up',
    ])
    expect(builtOutOfPlace(broken)).toEqual([
      'src/cli/commands/wait.ts: createApiClient',
      'src/cli/runs/x.ts: createDownloader',
    ])
  })
})

describe('the layers', () => {
  it('allow every import of src and bin', () => {
    expect(SOURCES.length).toBeGreaterThan(100)
    expect(SOURCES.flatMap(({ imports }) => imports).length).toBeGreaterThan(400)
    expect(wrongImports(SOURCES)).toEqual([])
  })

  it('let engines import each other only where they are registered', () => {
    expect(builtOutOfPlace(SOURCES).filter((each) => !PURE_FACTORIES.includes(each))).toEqual([])
  })
})

describe('the source', () => {
  const users = (pattern: RegExp) => SOURCES.filter(({ text }) => pattern.test(text)).map(({ path }) => path)
  const importers = (name: string) =>
    SOURCES.filter(({ imports }) =>
      imports.some(({ specifier }) => specifier === name || specifier.startsWith(`${name}/`)),
    ).map(({ path }) => path)
  /** The renderer is a process of its own, with its own edge. */
  const isOwnProcess = (path: string) =>
    path.startsWith('src/service/engines/') || path.startsWith('src/preview/')

  it.each([
    ['ora', ['src/cli/terminal/progress.ts']],
    ['chalk', ['src/cli/terminal/style.ts']],
    ['conf', ['src/cli/settings/config-file.ts']],
    ['libsql', ['src/host/database-file.ts']],
    ['pg', ['src/service/store/postgres/driver.ts']],
    ['undici', ['src/host/exchange.ts', 'src/host/undici-parts.d.ts', 'src/host/undici.ts']],
  ])('imports %s only where it is listed', (name, places) => expect(importers(name)).toEqual(places))

  it.each([
    ['commander', 'src/cli/'],
    ['@inquirer/password', 'src/cli/'],
    ['open', 'src/cli/'],
    ['prom-client', 'src/service/metrics/'],
    ['@modelcontextprotocol/sdk', 'src/cli/mcp/'],
    ['fastify', 'src/service/http/'],
    ['sharp', 'src/preview/'],
    ['preact', 'src/console/'],
  ])('imports %s only below %s', (name, folder) => {
    expect(importers(name)).not.toEqual([])
    expect(importers(name).filter((path) => !path.startsWith(folder))).toEqual([])
  })

  it.each([
    ['process.exit', /\bprocess\.exit\b/, ['src/cli/process/start.ts']],
    ['process.argv', /\bprocess\.argv\b/, ['src/cli/process/start.ts']],
  ])('uses %s only in one file', (_, pattern, places) =>
    expect(users(pattern).filter((path) => !isOwnProcess(path))).toEqual(places),
  )

  it('never writes to the console', () =>
    expect(users(/\bconsole\s*\.\s*(assert|debug|dir|error|info|log|table|trace|warn)\b/)).toEqual([]))

  it('never removes a folder recursively: `rm` follows a link that appears meanwhile', () => {
    const recursive = /\brm(dir)?(Sync)?\(.*recursive/
    expect(SOURCES.filter(({ text }) => recursive.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('keeps functions within 100 lines in all but two files', () => {
    const RULE = 'noExcessiveLinesPerFunction'
    const rules = (JSON.parse(read('biome.json')).overrides as readonly Override[])
      .map(({ includes, linter }) => ({ includes, rule: linter.rules.complexity?.[RULE] }))
      .filter(({ rule }) => rule !== undefined)
    const [all, tables, ...more] = rules
    expect(all).toEqual({ includes: ['src/**'], rule: { level: 'error', options: { maxLines: 100 } } })
    // Tables that only grow: the tools of MCP, the methods of the journal.
    expect(tables?.includes).toEqual(['src/cli/mcp/definitions.ts', 'src/journal/index.ts'])
    expect(more).toEqual([])
  })

  it('keeps files within 500 lines, and names them for their content', () => {
    const lines = ({ text }: Source) => text.trimEnd().split('\n').length
    expect(SOURCES.filter((source) => lines(source) > 500).map(({ path }) => path)).toEqual([])
    const vague = /(^|\/)([\w-]+-)?(utils?|helpers?|common|types?|managers?)(\/|\.[cm]?[jt]sx?$)/
    expect(SOURCES.filter(({ path }) => vague.test(path)).map(({ path }) => path)).toEqual([])
  })
})
