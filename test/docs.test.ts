/**
 * Compares the docs with the code: every command, flag, setting, variable and code is documented. A failure shows the missing
 * row. `npm run docs` writes the tables of flags, codes and variables.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exitRows } from '../src/cli/help/topic-texts.js'
import { FURTHER_ENVIRONMENT, SETTINGS, SHARED_ENVIRONMENT } from '../src/cli/settings/table.js'
import { EXIT, OWN_CODES } from '../src/errors.js'
import { PROBLEMS } from '../src/protocol/problems.js'
import { commandsPage } from './support/commands-page.js'
import { OPENAPI_FILE, openapiDocument } from './support/openapi-document.js'
import { pathsBelow, ROOT, read } from './support/project.js'

const TEXT_FILE = /\.(md|json|ts|mjs|js|cjs|sql|yml|yaml|sh)$|^\.?[^.]*$/

/** The expected rows that are missing. */
const missingFrom = (text: string, rows: readonly string[]): readonly string[] =>
  rows.filter((row) => !text.includes(row))

describe('docs/commands.md', () => {
  test('contains the generated examples, descriptions and flags of every command', async () => {
    await expect(await commandsPage(read('docs/commands.md'))).toMatchFileSnapshot('../docs/commands.md')
  })
})

describe('docs/environment.md', () => {
  interface Setting {
    readonly about: string
    readonly environment?: string
    readonly key?: string
    readonly default?: string
  }
  const settings = Object.values<Setting>(SETTINGS)
  const rows = (): readonly string[] => read('docs/environment.md').split('\n')

  test('contains the generated descriptions in its tables', async () => {
    const text = rows()
      .map((row) => {
        const cells = row.split(' | ')
        const setting = settings.find(
          ({ environment, key }) =>
            cells.length > 3 &&
            [environment, key].some((name) => name !== undefined && cells.includes(`\`${name}\``)),
        )
        if (setting !== undefined) return [`| ${setting.about}`, ...cells.slice(1)].join(' | ')
        const variables = Object.entries({ ...FURTHER_ENVIRONMENT, ...SHARED_ENVIRONMENT })
        const [, about] = variables.find(([names]) => cells[0] === `| ${quotedNames(names)}`) ?? []
        return about === undefined ? row : `${cells[0]} | ${about} |`
      })
      .join('\n')
    await expect(text).toMatchFileSnapshot('../docs/environment.md')
  })

  test('lists every setting with description, variable, key and default', () => {
    const missing = settings.filter(({ about, environment, key, ...rest }) => {
      const words = [environment, key, rest.default].filter((word) => word !== undefined)
      return !rows().some(
        (row) => row.includes(`| ${about} |`) && words.every((word) => row.includes(`\`${word}\``)),
      )
    })
    expect(missing).toEqual([])
  })

  test('lists every further variable', () => {
    const text = `\n${rows().join('\n')}`
    const names = Object.keys(FURTHER_ENVIRONMENT).map((name) => `\n| \`${name}\` |`)
    expect(missingFrom(text, names)).toEqual([])
  })

  test('names every RUSHES_ variable in the source, and those of other programs', () => {
    const named = pathsBelow('src', TEXT_FILE).flatMap(
      (path) => read(path).match(/\bRUSHES_[A-Z_]+\b/g) ?? [],
    )
    expect(missingFrom(rows().join('\n'), named)).toEqual([])
    const others = ['NO_COLOR', 'FORCE_COLOR', 'CI', 'HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY']
    const tables = rows().filter((row) => row.startsWith('|'))
    expect(
      missingFrom(
        tables.join('\n'),
        others.map((name) => `\`${name}\``),
      ),
    ).toEqual([])
  })
})

describe('docs/exit-codes.md', () => {
  const text = (): string => read('docs/exit-codes.md')

  test('contains the generated table of exit codes', async () => {
    const signals: readonly number[] = [EXIT.sighup, EXIT.sigint, EXIT.sigterm]
    const codesOf = (exit: number): string =>
      Object.entries(OWN_CODES)
        .filter(([code, own]) => own.exit === exit || (code === 'interrupted' && signals.includes(exit)))
        .map(([code]) => `\`${code}\``)
        .join(', ')
    const rows = exitRows().map(([exit, { happened, next }]) => {
      const codes = codesOf(exit)
      return `| ${exit} | ${happened} | ${next} |${codes && ` ${codes}`} |\n`
    })
    const written = text().replace(
      /(^\| exit \|.*\n.*\n)(\|.*\n)+/m,
      (_, head: string) => head + rows.join(''),
    )
    expect(written).toContain(rows.join(''))
    await expect(written).toMatchFileSnapshot('../docs/exit-codes.md')
  })

  test('lists every code of the service with its status and exit code', () => {
    const rows = Object.entries(PROBLEMS).map(
      ([code, { status, exit }]) => `\n| \`${code}\` | ${status} | ${exit} |`,
    )
    expect(missingFrom(text(), rows)).toEqual([])
  })
})

describe('docs/openapi.json', () => {
  test('is generated from the built-in models', async () => {
    const text = `${JSON.stringify(openapiDocument(), undefined, 2)}\n`
    await expect(text).toMatchFileSnapshot(OPENAPI_FILE)
  })
})

describe('README.md', () => {
  const readme = read('README.md')
  const blocks = [...readme.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block.trim())

  test('begins with the two commands, each alone in a code block', () => {
    expect(blocks.slice(0, 2)).toEqual([
      'npm ci && npx rushes run image --local "a red fox in fresh snow"',
      'npm cit',
    ])
  })

  test('shows a terminal with the lines of the tour, and no API key', () => {
    const [, tour = ''] = /^## One minute$[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(readme) ?? []
    const shown = read('docs/session.svg').replace(/&#(\d+);/g, (_, sign) => String.fromCharCode(sign))
    const lines = tour.trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.filter((line) => !shown.includes(`>$ ${line}<`) && !shown.includes(`>> ${line}<`))).toEqual(
      [],
    )
    expect(shown).not.toMatch(/\brk_\w/)
  })

  test('installs the current version of the package', () => {
    const { version } = JSON.parse(read('package.json'))
    const pages = ['README.md', ...pathsBelow('docs', /\.md$/)].map(read).join('\n')
    const named = [...pages.matchAll(/rushes-[\w.]+\.tgz/g)].map(([name]) => name)
    expect(new Set(named)).toEqual(new Set([`rushes-${version}.tgz`]))
    expect(pages.match(/^npm (i|install) (-g )?rushes\b.*$/gm)).toBeNull()
  })

  test('links to the index of the docs', () => {
    expect(readme).toContain('](docs/README.md)')
  })

  test('stays short enough to read in a few minutes', () => {
    const prose = readme.replace(/^```[\s\S]*?^```$/gm, '').replace(/^\|.*$/gm, '')
    expect(prose.split(/\s+/).length).toBeLessThan(1_000)
  })

  test('begins with one sentence that describes the program', () => {
    const [, , sentence = ''] = readme.split('\n')
    expect(sentence).toMatch(/^`rushes` is .*[^.]\.$/)
  })
})

describe('docs/README.md', () => {
  const index = read('docs/README.md')

  test('links to every page once', () => {
    const pages = pathsBelow('docs', /\.md$/).filter((path) => path !== 'docs/README.md')
    expect(pages.length).toBeGreaterThan(20)
    const links = [...index.matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => `docs/${link}`)
    expect(pages.filter((path) => links.filter((link) => link === path).length !== 1)).toEqual([])
  })
})

describe('docs/architecture.md', () => {
  const [, tree = ''] = /^src\/\n((?: {2}.*\n)+)/m.exec(read('docs/architecture.md')) ?? []

  /** Paths of the lines, from their indentation. */
  const drawn: string[] = []
  const above: string[] = []
  for (const [, indent = '', name = ''] of tree.matchAll(/^( +)([\w.-]+\/?) +\S/gm)) {
    if (indent.length > 6) continue
    above.splice(indent.length / 2 - 1)
    above.push(name)
    drawn.push(`src/${above.join('')}`)
  }

  test('shows only existing files', () => {
    expect(drawn.length).toBeGreaterThan(20)
    expect(drawn.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  test.each(['src', 'src/batch', 'src/service', 'src/service/engines', 'src/cli'])(
    'shows every folder of %s',
    (folder) => {
      const names = readdirSync(join(ROOT, folder), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${folder}/${name}/`)
      expect(names.filter((path) => !drawn.includes(path))).toEqual([])
    },
  )
})

describe('CONTRIBUTING.md and docs/architecture.md', () => {
  /** Paths in backticks, from the root or from `src`; `<name>` and `*` stand for a part of a name. */
  const pathsIn = (text: string): readonly string[] =>
    [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]*)`/g)].map(([, path = '']) => path)
  const isOurs = (path: string): boolean =>
    /\/$|\.(ts|tsx|mts|mjs|cjs|js|md|json|lua|yml|svg)$|^\.ci\//.test(path)
  const exists = (path: string): boolean =>
    ['.', 'src', 'src/service'].some((base) => existsSync(join(ROOT, base, path)))

  test.each(['CONTRIBUTING.md', 'docs/architecture.md'])('%s names only existing files', (page) => {
    const paths = pathsIn(read(page)).filter(
      (path) => isOurs(path) && !/^dist\/|^processes\/|^\.fox/.test(path),
    )
    expect(paths.length).toBeGreaterThan(20)
    expect(paths.filter((path) => !exists(path))).toEqual([])
  })
})

describe('every file that is written by hand', () => {
  const files = [
    ...readdirSync(ROOT, { withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(md|json|ts|mjs)$/.test(entry.name))
      .map(({ name }) => name),
    ...['bin', 'src', 'test', 'bench', 'docs', 'examples', '.ci', '.github'].flatMap((folder) =>
      pathsBelow(folder, TEXT_FILE),
    ),
  ]

  test('contains no path of a machine and no registry', () => {
    const places = [
      // Folders of checkouts and homes.
      /(?<![\w.~$}:/-])\/(home|root|Users|work|builds|workspace)\/[\w.-]+/,
      /(?<![\w.])[A-Z]:\\+Users\\/,
      /\bregistry[.-][a-z0-9-]+\.(org|com|io|net|dev)\b/i,
      /\b(npmjs|yarnpkg|artifactory|jfrog)\.(org|com|io)\b/i,
      /"resolved":\s*"http/,
    ]
    const found = files.flatMap((path) => {
      const text = read(path)
      return places.flatMap((place) => (place.exec(text) ?? []).slice(0, 1).map((word) => `${path}: ${word}`))
    })
    expect(found).toEqual([])
  })

  test('uses plain words', () => {
    // Their words come from the source.
    const generated = /^docs\/(api|commands|environment|exit-codes)\.md$|^docs\/schemas\/|^test\/contract\//
    const odd =
      /\b((?<!there )(is|are) no (?!longer)|mend(s|ed)? |for ever|so many|that many|goes on|anew|whoever|nobody|brings?)\b|\b(ENOENT|EISDIR)\b|[sS]ee `--help`/
    const found = files
      .filter((path) => path.endsWith('.md') && !generated.test(path) && !path.startsWith('bench/'))
      .flatMap((path) =>
        read(path)
          .split('\n')
          .filter((line) => odd.test(line))
          .map((line) => `${path}: ${line}`),
      )
    expect(found).toEqual([])
  })

  test('links to existing files and headings', () => {
    const broken = files
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) =>
        linksOf(read(path))
          .filter((link) => !leadsSomewhere(path, link))
          .map((link) => `${path}: ${link}`),
      )
    expect(broken).toEqual([])
  })
})

const quotedNames = (names: string): string =>
  names
    .split(', ')
    .map((name) => `\`${name}\``)
    .join(', ')

const linksOf = (markdown: string): readonly string[] =>
  [...withoutCode(markdown).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z][a-z+.-]*:/i.test(link))

const withoutCode = (markdown: string): string =>
  markdown.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '')

function leadsSomewhere(from: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(ROOT, from) : resolve(ROOT, dirname(from), path)
  if (!existsSync(target)) return false
  if (anchor === undefined) return true
  if (statSync(target).isDirectory()) return false
  const headings = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(
    ([, heading = '']) => heading,
  )
  return headings.some((heading) => slugOf(heading) === anchor)
}

/** The anchor of a heading on the usual hosts of Markdown. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
