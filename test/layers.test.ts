/** The architecture is a promise: a file imports from lower ranks and from its own folder, never up, never sideways. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** From the top down; a room is a folder, or a file of `src` itself. */
const RANKS: readonly (readonly string[])[] = [
  ['bin'],
  ['src/cli', 'src/index.ts'],
  ['src/client', 'src/limiter', 'src/journal', 'src/download', 'src/batch', 'src/service'],
  ['src/host'],
  ['src/protocol', 'src/errors.ts'],
]

const IMPORT = /(?:\bfrom\s*|\bimport\s*\(\s*|\bimport\s+)['"](\.[^'"]+)['"]/g

const roomOf = (path: string): string | undefined =>
  RANKS.flat().find((room) => path === room || path.startsWith(`${room}/`))

const rankOf = (room: string): number => RANKS.findIndex((rooms) => rooms.includes(room))

/** What is wrong with an import, or undefined. The words of rank 0 know each other. */
function wrongImport(from: string, to: string): string | undefined {
  const [here, there] = [roomOf(from), roomOf(to)]
  if (here === undefined || there === undefined) return `${from} → ${to}: outside the plan`
  if (here === there) return undefined
  if (rankOf(here) < rankOf(there)) return undefined
  if (rankOf(here) === RANKS.length - 1 && rankOf(there) === RANKS.length - 1) return undefined
  return `${from} → ${to}: ${rankOf(here) === rankOf(there) ? 'sideways' : 'up'}`
}

const importsOf = (text: string): readonly string[] =>
  [...text.matchAll(IMPORT)].map(([, path]) => path ?? '')

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|js)$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))

const SOURCES = filesBelow('src').map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

/** The file that an import names; the build's own and the manifest are no rooms. */
const targetOf = (path: string, specifier: string): string =>
  posix.normalize(posix.join(dirname(path), specifier)).replace(/\.js$/, '.ts')

describe('the ranks', () => {
  it.each([
    ['src/client/look.ts', 'src/host/http.ts', undefined],
    ['src/client/look.ts', 'src/client/pace.ts', undefined],
    ['src/protocol/problems.ts', 'src/errors.ts', undefined],
    ['src/client/look.ts', 'src/download/index.ts', 'sideways'],
    ['src/host/http.ts', 'src/client/index.ts', 'up'],
    ['src/service/index.ts', 'src/cli/main.ts', 'up'],
    ['src/protocol/run.ts', 'src/host/clock.ts', 'up'],
    ['src/cli/main.ts', 'src/helpers/x.ts', 'outside the plan'],
  ])('%s → %s', (from, to, wrong) => {
    const found = wrongImport(from, to)
    if (wrong === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(wrong)
  })

  it('finds every form of import', () => {
    const text = `import a from './a.js'\nimport './b.js'\nexport * from './c.js'\nimport type { D } from './d.js'\nconst e = await import('./e.js')`
    expect(importsOf(text)).toEqual(['./a.js', './b.js', './c.js', './d.js', './e.js'])
  })

  it('hold', () => {
    expect(SOURCES.length).toBeGreaterThan(100)
    const wrong = SOURCES.flatMap(({ path, text }) =>
      importsOf(text)
        .map((specifier) => targetOf(path, specifier))
        .filter((target) => target !== 'package.json')
        .map((target) => wrongImport(path, target)),
    ).filter((each) => each !== undefined)
    expect(wrong).toEqual([])
  })
})

describe('one place each', () => {
  const users = (pattern: RegExp) => SOURCES.filter(({ text }) => pattern.test(text)).map(({ path }) => path)

  it.each([
    ['ora', /['"]ora['"]/, ['src/cli/progress.ts']],
    ['chalk', /['"]chalk['"]/, ['src/cli/style.ts']],
    ['conf', /['"]conf['"]/, ['src/cli/config-file.ts']],
    ['libsql', /['"]libsql['"]/, ['src/host/database.ts']],
    ['process.argv', /\bprocess\.argv\b/, ['src/cli/edge.ts']],
  ])('%s', (_, pattern, places) => expect(users(pattern)).toEqual(places))

  it('keeps commander to the command line', () => {
    expect(users(/['"]commander['"]/).filter((path) => !path.startsWith('src/cli/'))).toEqual([])
  })

  it('ends the process at the edge alone, and in the renderer that is a process of its own', () => {
    expect(users(/\bprocess\.exit\b/).filter((path) => !path.startsWith('src/service/engines/'))).toEqual([
      'src/cli/edge.ts',
    ])
  })

  it('keeps files readable and folders named', () => {
    expect(SOURCES.filter(({ text }) => text.split('\n').length > 300).map(({ path }) => path)).toEqual([])
    expect(
      SOURCES.filter(({ path }) => /(utils?|helpers?|common|types|manager)(\/|\.ts$)/.test(path)),
    ).toEqual([])
  })
})
