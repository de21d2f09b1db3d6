/** What the source imports and uses where. The ranks of its rooms are in biome.json (`noRestrictedImports`). */
import { posix } from 'node:path'
import { expect, it } from 'vitest'
import { pathsBelow, read } from './support/project.js'

const IMPORT = /\b(?:from|import|require)\s*\(?\s*['"]([^'"]+)['"]/g

const SOURCES = pathsBelow('src', /\.tsx?$/).map((path) => {
  const text = read(path)
  return { path, text, imports: [...text.matchAll(IMPORT)].map(([, specifier = '']) => specifier) }
})

/** Pairs of folders of one room that import each other. May only fall: the aim is 0. */
const MAX_MUTUAL = 0

it('the source has no more pairs of folders that import each other than before', () => {
  const arrows = new Set(
    SOURCES.flatMap(({ path, imports }) => {
      const from = posix.dirname(path)
      return imports
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.dirname(posix.join(from, specifier)))
        .filter((to) => to !== from && to.split('/')[1] === from.split('/')[1])
        .map((to) => `${from} ${to}`)
    }),
  )
  const pairs = [...arrows].filter((arrow) => {
    const [from = '', to = ''] = arrow.split(' ')
    return from < to && arrows.has(`${to} ${from}`)
  })
  expect(pairs.length, pairs.join('\n')).toBeLessThanOrEqual(MAX_MUTUAL)
})

it.each([
  ['ora', 'src/cli/runs/runs-view.ts'],
  ['chalk', 'src/cli/terminal/output.ts'],
  ['conf', 'src/cli/settings/config-file.ts'],
  ['libsql', 'src/host/database.ts'],
  ['pg', 'src/service/store/postgres/'],
  ['undici', 'src/host/'],
  ['commander', 'src/cli/'],
  ['@inquirer/password', 'src/cli/'],
  ['open', 'src/cli/'],
  ['prom-client', 'src/service/http/metrics.ts'],
  ['@modelcontextprotocol/sdk', 'src/cli/mcp/'],
  ['fastify', 'src/service/'],
  ['preact', 'src/console/'],
  ['preact-render-to-string', 'src/console/'],
  ['sharp', 'src/preview/'],
])('the source imports %s only in %s', (name, place) => {
  const importers = SOURCES.filter(({ imports }) =>
    imports.some((specifier) => specifier === name || specifier.startsWith(`${name}/`)),
  ).map(({ path }) => path)
  expect(importers).not.toEqual([])
  expect(importers.filter((path) => !path.startsWith(place))).toEqual([])
})

it('the source ends the process and reads its arguments in one file', () => {
  // The renderer and the commands of engines are processes with an edge of their own.
  const own = /^src\/(service\/engines|preview)\//
  const users = SOURCES.filter(({ path, text }) => /\bprocess\.(exit|argv)\b/.test(text) && !own.test(path))
  expect(users.map(({ path }) => path)).toEqual(['src/cli/start.ts'])
})

it('the source removes a folder recursively only as a private one of its own, in which nobody puts a link meanwhile', () => {
  const recursive = SOURCES.filter(({ text }) => /\brm(dir)?(Sync)?\(.*recursive/.test(text))
  expect(recursive.map(({ path }) => path)).toEqual(['src/host/own-folder.ts'])
})

it('the source names files for their content', () => {
  const vague = /(^|\/)([\w-]+-)?(utils?|helpers?|common|types?|managers?)(\/|\.tsx?$)/
  expect(SOURCES.map(({ path }) => path).filter((path) => vague.test(path))).toEqual([])
})
