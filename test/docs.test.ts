/**
 * The docs and the program agree: every command, flag, setting, variable and code is documented, and the docs name no other. `npm run docs`
 * writes the generated parts; `docs.system.ts` runs the commands.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { fullName } from '../src/cli/help/format-help.js'
import { withGeneratedParts } from './docs/generated-parts.js'
import { manifestSchema } from './docs/manifest-schema.js'
import { OPENAPI_FILE, openapiDocument } from './docs/openapi-document.js'
import { everyCommand, optionsOf, pathsBelow, ROOT, read } from './support/project.js'

const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'deploy/RELEASING.md',
  ...['docs', 'skills'].flatMap((folder) => pathsBelow(folder, /\.md$/)),
]
const TEXT_FILE = /\.(md|json|ts|tsx|mjs|js|cjs|sql|yml|yaml|sh)$|^\.?[^.]*$/

const matchesOf = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([whole, part]) => part ?? whole)

/** Returns what the function finds on all pages, with the page before it. */
const found = (of: (text: string, page: string) => readonly string[]): readonly string[] =>
  PAGES.flatMap((page) => of(read(page), page).map((each) => `${page}: ${each}`))

test.each(PAGES.filter((page) => read(page).includes('<!-- generated: ')))(
  '%s contains the generated parts',
  async (page) => {
    await expect(await withGeneratedParts(read(page))).toMatchFileSnapshot(`../${page}`)
  },
)

test('docs/schemas/manifest.json is generated', async () => {
  await expect(`${JSON.stringify(manifestSchema(), null, 1)}\n`).toMatchFileSnapshot(
    '../docs/schemas/manifest.json',
  )
})

test('docs/openapi.json is generated from the built-in models', async () => {
  await expect(`${JSON.stringify(openapiDocument(), undefined, 2)}\n`).toMatchFileSnapshot(OPENAPI_FILE)
})

/** Flags of models in the examples. */
const OF_MODELS = ['--steps', '--seed', '--guidance-scale', '--end-image-url', '--audio-url', '--no-…']

test('commands and flags that the docs show are those of the program', async () => {
  const commands = new Map((await everyCommand()).map((command) => [fullName(command), command]))
  const flags = new Set(
    [...commands.values()].flatMap((command) => optionsOf(command).flatMap(({ long }) => long ?? [])),
  )
  for (const flag of ['--help', ...OF_MODELS]) flags.add(flag)
  const unknown = found((text, page) =>
    // The changelog names what was removed.
    matchesOf(
      page === 'CHANGELOG.md' ? '' : text,
      /(?:^|[`($|] *|npx )(rushes [^`\n|#]*|--[^`\n]*)/gm,
    ).flatMap((line) => [
      ...(isUnknown(commands, line.split(' ')) ? [line] : []),
      ...matchesOf(line, /(?<=^|\s)--[a-z][\w…-]*/g).filter((flag) => !flags.has(flag)),
    ]),
  )
  expect(unknown).toEqual([])
})

/** Whether the words after `rushes` begin with a name that no command has. */
function isUnknown(
  commands: ReadonlyMap<string, Command>,
  [program = '', ...words]: readonly string[],
): boolean {
  let command = commands.get(program)
  for (const word of words.filter((each) => /^[a-z]+$/.test(each))) {
    if (command === undefined || command.commands.length === 0 || word === 'help') return false
    const child = commands.get(`${fullName(command)} ${word}`)
    if (child === undefined) return command.registeredArguments.length === 0
    command = child
  }
  return false
}

test('variables docs/environment.md names every variable in the source, and those of other programs', () => {
  const text = read('docs/environment.md')
  const named = pathsBelow('src', TEXT_FILE).flatMap((path) => matchesOf(read(path), /\bRUSHES_[A-Z_]+\b/g))
  const others = ['NO_COLOR', 'FORCE_COLOR', 'CI', 'HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY']
  expect([...new Set([...named, ...others])].filter((name) => !text.includes(`\`${name}\``))).toEqual([])
  const unknown = found((page) => matchesOf(page, /\bRUSHES_[A-Z_]+\b/g)).filter(
    (each) => !named.includes(each.split(': ')[1] ?? ''),
  )
  expect(unknown).toEqual([])
})

const readme = read('README.md')
const blocks = matchesOf(readme, /^```\w*\n([\s\S]*?)^```$/gm)

test('README.md begins with one sentence, and the two commands, each alone in a code block', () => {
  expect(readme.split('\n')[2]).toMatch(/^`rushes` is .*[^.]\.$/)
  expect(blocks.slice(0, 2)).toEqual([
    'npm ci && npx rushes run image --local "a red fox in fresh snow"\n',
    'npm cit\n',
  ])
})

test('README.md has at most 800 words', () => {
  expect(readme.split(/\s+/).length).toBeLessThanOrEqual(801)
})

test('README.md shows a terminal with the lines of the tour, and no API key', () => {
  const shown = read('docs/session.svg').replace(/&#(\d+);/g, (_, sign) => String.fromCharCode(sign))
  const lines = (blocks[2] ?? '').trimEnd().split('\n')
  expect(lines.length).toBeGreaterThan(5)
  expect(lines.filter((line) => !shown.includes(`>$ ${line}<`) && !shown.includes(`>> ${line}<`))).toEqual([])
  expect(shown).not.toMatch(/\brk_\w/)
})

test('the pages are listed in docs/README.md', () => {
  const links = matchesOf(read('docs/README.md'), /\]\(([^)#]+)\)/g)
  const pages = pathsBelow('docs', /\.md$/).map((path) => path.replace('docs/', ''))
  expect(pages.filter((page) => page !== 'README.md' && !links.includes(page))).toEqual([])
})

test('the pages link to existing files and headings', () => {
  expect(found((text, page) => linksOf(text).filter((link) => !leadsSomewhere(page, link)))).toEqual([])
})

test('the pages install the current version of the package', () => {
  const { version } = JSON.parse(read('package.json'))
  const wrong = found((text) => [
    ...matchesOf(text, /rushes-[\w.]+\.tgz/g).filter((name) => name !== `rushes-${version}.tgz`),
    ...matchesOf(text, /^npm (?:i|install) (?:-g )?rushes\b.*$/gm),
  ])
  expect(wrong).toEqual([])
})

test('the pages use plain words', () => {
  const odd =
    /^.*\b(?:(?<!there )(?:is|are) no (?!longer)|mend(?:s|ed)? |for ever|so many|that many|goes on|anew|whoever|nobody|brings?|ENOENT|EISDIR)\b.*$/gm
  expect(found((text, page) => (page === 'docs/commands.md' ? [] : matchesOf(text, odd)))).toEqual([])
})

test.each(['CONTRIBUTING.md', 'docs/architecture.md'])('the pages %s names only existing files', (page) => {
  const paths = matchesOf(read(page), /`((?:[\w.-]+\/)+[\w.-]*)`/g).filter(
    (path) => /\/$|\.\w+$/.test(path) && !path.startsWith('dist/'),
  )
  expect(paths.length).toBeGreaterThan(20)
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('the pages docs/architecture.md shows every folder of the source', () => {
  const [, tree = ''] = /^src\/\n((?: {2}.*\n)+)/m.exec(read('docs/architecture.md')) ?? []
  const drawn: string[] = []
  const above: string[] = []
  for (const [, indent = '', name = ''] of tree.matchAll(/^( {2,6})([\w.-]+\/?) +\S/gm)) {
    above.splice(indent.length / 2 - 1)
    drawn.push(`src/${[...above, name].join('')}`)
    above.push(name)
  }
  expect(drawn.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  const folders = ['src', 'src/batch', 'src/service', 'src/cli'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${folder}/${name}/`),
  )
  expect(folders.filter((path) => !drawn.includes(path))).toEqual([])
})

test('the skill states its name, and a description of at most 1,024 characters', () => {
  const [, name, description = ''] =
    /^---\nname: (.*)\ndescription: (.*)\n---\n/.exec(read('skills/rushes/SKILL.md')) ?? []
  expect(name).toBe('rushes')
  expect(description.length).toBeLessThanOrEqual(1_024)
})

test('no file contains a path of a machine or a registry', () => {
  const places = [
    // Folders of checkouts and homes.
    /(?<![\w.~$}:/-])\/(home|root|Users|work|builds|workspace)\/[\w.-]+/,
    /(?<![\w.])[A-Z]:\\+Users\\/,
    /\bregistry[.-][a-z0-9-]+\.(org|com|io|net|dev)\b/i,
    /\b(npmjs|yarnpkg|artifactory|jfrog)\.(org|com|io)\b/i,
    /"resolved":\s*"http/,
  ]
  const top = readdirSync(ROOT).filter((name) => /\.(md|json|ts|mjs)$/.test(name))
  const folders = ['bin', 'src', 'test', 'bench', 'docs', 'skills', 'examples', 'deploy', '.ci', '.github']
  const files = [...top, ...folders.flatMap((folder) => pathsBelow(folder, TEXT_FILE))]
  const wrong = files.flatMap((path) =>
    places.flatMap((place) => place.exec(read(path))?.[0] ?? []).map((word) => `${path}: ${word}`),
  )
  expect(wrong).toEqual([])
})

const linksOf = (markdown: string): readonly string[] =>
  matchesOf(markdown.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, ''), /\]\(([^)\s]+)\)/g).filter(
    (link) => !/^[a-z][a-z+.-]*:/i.test(link),
  )

function leadsSomewhere(from: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(ROOT, from) : resolve(ROOT, dirname(from), path)
  if (!existsSync(target) || anchor === undefined) return existsSync(target)
  return matchesOf(readFileSync(target, 'utf8'), /^#+ (.*)$/gm).some((heading) => slugOf(heading) === anchor)
}

/** The anchor of a heading on the usual hosts of Markdown. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
